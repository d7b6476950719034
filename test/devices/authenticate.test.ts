import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openDatabase } from '../../src/db/database.ts';
import type { Sql } from '../../src/db/database.ts';
import { createDeviceAuthenticator } from '../../src/devices/authenticate.ts';
import type { DeviceAuthenticator } from '../../src/devices/authenticate.ts';
import { deriveToken } from '../../src/devices/token.ts';
import { type App, keys, startApp } from './app.ts';

let app: App;
let token: string;
beforeAll(async () => {
  app = await startApp();
  token = await app.account();
});
afterAll(() => app.close());

/** The real database, with its queries counted, and away when told so. */
let queries: string[] = [];
let away = false;
const unreachable = openDatabase({
  connectionString: 'postgres://nobody@127.0.0.1:1/nothing',
  maxConnections: 1,
  connectTimeoutMs: 1_000,
  statementTimeoutMs: 1_000,
  onIdleError: () => {},
});
const db = {
  query: (query: string, values?: unknown[]) => {
    queries.push(typeof query === 'string' ? query : (query as { text: string }).text);
    return (away ? unreachable : app.db).query(query, values);
  },
} as Sql;

let time = 0;
let authenticator: DeviceAuthenticator;
beforeEach(() => {
  queries = [];
  away = false;
  const clock = () => time;
  authenticator = createDeviceAuthenticator({ db, keys, bus: app.bus, clock });
});
afterEach(() => authenticator.close());

type Device = Awaited<ReturnType<App['device']>>;
const credentials = ({ uuid, password }: Device) => ({ username: uuid, password });
const rotate = async ({ uuid }: Device, revoke: boolean) => {
  const path = `/v2/devices/${uuid}/token`;
  const answer = await app.call('POST', path, { token, body: { revoke } });
  return { username: uuid, password: String(answer.body['deviceAuthToken']) };
};

/** The identity of a device that must be let in. */
const letIn = async (shown: { username: string; password: string }) => {
  const identity = await authenticator.authenticateDevice(shown);
  if (!identity) throw new Error('was not let in');
  return identity;
};

describe('credentials', () => {
  test('of a device open its door, and no other', async () => {
    const one = await app.device(token);
    const other = await app.device(token);
    const identity = { deviceId: one.deviceId, uuid: one.uuid, accountId: one.accountId };
    expect(await authenticator.authenticateDevice(credentials(one))).toEqual(identity);
    const upper = { username: one.uuid.toUpperCase(), password: one.password };
    expect(await authenticator.authenticateDevice(upper)).toEqual(identity);
    for (const [username, password] of [
      [one.uuid, other.password],
      [one.uuid, ''],
      [randomUUID(), one.password],
      ['', ''],
      ['__proto__', one.password],
      [`${one.uuid}\0`, one.password],
    ] as const) {
      expect(await authenticator.authenticateDevice({ username, password })).toBeNull();
    }
  });

  test('cost no query once the device is known, and none with a user name that is no uuid', async () => {
    const device = await app.device(token);
    await authenticator.authenticateDevice(credentials(device));
    expect(queries).toHaveLength(1);
    for (let n = 0; n < 5; n += 1) await authenticator.authenticateDevice(credentials(device));
    await authenticator.authenticateDevice({ username: 'x', password: 'y' });
    expect(queries).toHaveLength(1);
  });

  test('of ten thousand devices at once are looked up in a few queries', async () => {
    const { rows } = await app.db.query<{ uuid: string }>(
      `with made as (
         insert into device (account_id, connector_id, configuration)
         select $1, 1, '{}' from generate_series(1, 10000) returning id, uuid
       ), state as (
         insert into device_state (device_id) select id from made
       )
       select uuid from made`,
      [Number(token)],
    );
    const answers = await Promise.all(
      rows.map(({ uuid }) =>
        authenticator.authenticateDevice({
          username: uuid,
          password: deriveToken(keys, uuid, 1),
        }),
      ),
    );
    expect(answers.every((answer) => answer !== null)).toBe(true);
    expect(queries.length).toBeLessThanOrEqual(10);
  });

  test('that are wrong cost a query a second and device, and do not lock the right ones out', async () => {
    const device = await app.device(token);
    const wrong = { username: device.uuid, password: 'wrong' };
    for (let n = 0; n < 20; n += 1) {
      expect(await authenticator.authenticateDevice(wrong)).toBeNull();
    }
    expect(queries).toHaveLength(1);
    expect(await authenticator.authenticateDevice(credentials(device))).not.toBeNull();
    expect(queries).toHaveLength(1);
    time += 1_001;
    await authenticator.authenticateDevice(wrong);
    expect(queries).toHaveLength(2);
  });

  test('of strangers share queries', async () => {
    const strangers = Array.from({ length: 500 }, () => randomUUID());
    const answers = await Promise.all(
      strangers.map((username) => authenticator.authenticateDevice({ username, password: 'x' })),
    );
    expect(answers.every((answer) => answer === null)).toBe(true);
    expect(queries).toHaveLength(1);
  });
});

describe('rotation', () => {
  test('lets the old token in until the new one is first used', async () => {
    const device = await app.device(token);
    const old = credentials(device);
    const identity = await letIn(old);
    const fresh = await rotate(device, false);
    expect(await letIn(old)).toEqual(identity);
    expect(await authenticator.isStillAllowed(identity, old)).toBe(true);

    app.told.length = 0;
    expect(await letIn(fresh)).toEqual(identity);
    expect(await authenticator.authenticateDevice(old)).toBeNull();
    const { deviceId, uuid } = device;
    expect(app.told).toEqual([{ channel: 'access', message: { deviceId, uuid } }]);
    expect(await authenticator.isStillAllowed(identity, old)).toBe(false);
    expect(await authenticator.isStillAllowed(identity, fresh)).toBe(true);
  });

  test('twice retires the first token even if the second was never used', async () => {
    const device = await app.device(token);
    const second = await rotate(device, false);
    await rotate(device, false);
    expect(await authenticator.authenticateDevice(credentials(device))).toBeNull();
    expect(await authenticator.authenticateDevice(second)).not.toBeNull();
  });

  test('with revoke retires the old token at once', async () => {
    const device = await app.device(token);
    const identity = await authenticator.authenticateDevice(credentials(device));
    const fresh = await rotate(device, true);
    expect(await authenticator.authenticateDevice(credentials(device))).toBeNull();
    expect(await authenticator.authenticateDevice(fresh)).toEqual(identity);
  });
});

describe('a change that another process made', () => {
  test('counts once the bus tells of it, or says that it may have missed one', async () => {
    const device = await app.device(token);
    const { deviceId, uuid } = device;
    const old = credentials(device);
    await authenticator.authenticateDevice(old);
    const raise = () =>
      app.db.query('update device set token_version = token_version + 1 where id = $1', [deviceId]);
    await raise();
    app.bus.publish('access', { deviceId, uuid });
    expect(await authenticator.authenticateDevice(old)).toBeNull();

    const fresh = { username: uuid, password: deriveToken(keys, uuid, 2) };
    app.bus.publish('resync', {});
    expect(await authenticator.authenticateDevice(fresh)).not.toBeNull();
    await raise();
    app.bus.publish('resync', {});
    expect(await authenticator.authenticateDevice(fresh)).toBeNull();
  });

  test('counts for a look-up that was under way, too', async () => {
    const device = await app.device(token);
    const { deviceId, uuid } = device;
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const { promise: read, resolve: tellRead } = Promise.withResolvers<void>();
    let holding = true;
    const slow = {
      query: async (query: string, values?: unknown[]) => {
        const result = await app.db.query(query, values);
        tellRead();
        if (holding) await held;
        return result;
      },
    } as Sql;
    const slowAuthenticator = createDeviceAuthenticator({ db: slow, keys, bus: app.bus });
    const answer = slowAuthenticator.authenticateDevice(credentials(device));
    await read;
    holding = false;
    await app.db.query('update device set token_version = 2 where id = $1', [deviceId]);
    app.bus.publish('access', { deviceId, uuid });
    release();
    expect(await answer).toBeNull();
    slowAuthenticator.close();
  });

  test('removal: nothing opens, and what was let in is no longer allowed', async () => {
    const device = await app.device(token);
    const identity = await letIn(credentials(device));
    await app.call('DELETE', `/v2/devices/${device.uuid}`, { token });
    expect(await authenticator.authenticateDevice(credentials(device))).toBeNull();
    expect(await authenticator.isStillAllowed(identity, credentials(device))).toBe(false);
  });
});

describe('with the store away', () => {
  test('a device that is known is let in, and one that is not is neither let in nor refused', async () => {
    const known = await app.device(token);
    const unknown = await app.device(token);
    await authenticator.authenticateDevice(credentials(known));
    away = true;
    const identity = await letIn(credentials(known));
    const unavailable = { code: 'unavailable' };
    await expect(authenticator.authenticateDevice(credentials(unknown))).rejects.toMatchObject(
      unavailable,
    );
    const wrong = { username: known.uuid, password: 'wrong' };
    await expect(authenticator.authenticateDevice(wrong)).rejects.toMatchObject(unavailable);
    await expect(authenticator.isStillAllowed(identity, credentials(known))).rejects.toMatchObject(
      unavailable,
    );
    away = false;
    expect(await authenticator.authenticateDevice(credentials(unknown))).not.toBeNull();
  });

  test('a new token is let in, and retires the old one later', async () => {
    const device = await app.device(token);
    const fresh = await rotate(device, false);
    await letIn(credentials(device));
    away = true;
    await letIn(fresh);
    away = false;
    await letIn(credentials(device));
    await letIn(fresh);
    expect(await authenticator.authenticateDevice(credentials(device))).toBeNull();
  });
});
