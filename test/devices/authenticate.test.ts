import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { deriveToken } from '../../src/devices/tokens.ts';
import { type App, keys, secretIds, startApp } from './app.ts';
import { credentials, type Door, openDoor } from './door.ts';

let app: App;
let token: string;
let door: Door;
beforeAll(async () => {
  app = await startApp();
  token = await app.account();
});
beforeEach(() => {
  door = openDoor(app, token);
});
afterEach(() => door.authenticator.close());
afterAll(() => app.close());

describe('credentials', () => {
  test('of a device are accepted for it, and for no other', async () => {
    const one = await app.device(token);
    const other = await app.device(token);
    const identity = { deviceId: one.deviceId, uuid: one.uuid, accountId: one.accountId };
    expect(await door.authenticator.authenticateDevice(credentials(one))).toEqual(identity);
    const upper = { username: one.uuid.toUpperCase(), password: one.password };
    expect(await door.authenticator.authenticateDevice(upper)).toEqual(identity);
    for (const [username, password] of [
      [one.uuid, other.password],
      [one.uuid, ''],
      [randomUUID(), one.password],
      ['', ''],
      ['__proto__', one.password],
      [`${one.uuid}\0`, one.password],
    ] as const) {
      expect(await door.authenticator.authenticateDevice({ username, password })).toBeNull();
    }
  });

  test('cost no query once the device is cached, and none if the user name is not a uuid', async () => {
    const device = await app.device(token);
    await door.authenticator.authenticateDevice(credentials(device));
    expect(door.queries).toBe(1);
    for (let n = 0; n < 5; n += 1) await door.authenticator.authenticateDevice(credentials(device));
    await door.authenticator.authenticateDevice({ username: 'x', password: 'y' });
    expect(door.queries).toBe(1);
  });

  test('that are wrong are refused even if the right ones were used again and again, until these change', async () => {
    const device = await app.device(token);
    const right = credentials(device);
    for (let n = 0; n < 4; n += 1) expect(await door.letIn(right)).not.toBeNull();
    const { username, password } = right;
    const wrong = [
      password.slice(1),
      `${password}x`,
      `${password.slice(1)}x`,
      `${password.slice(0, -1)}é`,
      String.fromCodePoint(0x100 + (password.codePointAt(0) ?? 0)) + password.slice(1),
      '',
    ];
    for (const one of wrong)
      expect(
        await door.authenticator.authenticateDevice({ username, password: one }),
        one,
      ).toBeNull();
    expect(await door.letIn(right)).not.toBeNull();

    const fresh = await door.rotate(device, true);
    expect(await door.authenticator.authenticateDevice(right)).toBeNull();
    for (let n = 0; n < 3; n += 1) expect(await door.letIn(fresh)).not.toBeNull();
    expect(await door.authenticator.authenticateDevice(right)).toBeNull();
  });

  test('of the least recently used device are dropped from the cache first', async () => {
    const [first, second, third] = [
      await app.device(token),
      await app.device(token),
      await app.device(token),
    ] as const;
    const small = openDoor(app, token, 2);
    for (const device of [first, second, first, third]) await small.letIn(credentials(device));
    expect(small.queries).toBe(3);
    await small.letIn(credentials(first));
    expect(small.queries).toBe(3);
    await small.letIn(credentials(second));
    expect(small.queries).toBe(4);
    small.authenticator.close();
  });

  test('of ten thousand devices at once are looked up in a few queries', async () => {
    const { rows } = await app.db.query<{ uuid: string }>(
      `with made as (
         insert into device (account_id, connector_id, configuration, token_secret)
         select $1, 1, '{}', $2 from generate_series(1, 10000) returning id, uuid
       ), state as (
         insert into device_state (device_id) select id from made
       )
       select uuid from made`,
      [Number(token), secretIds[0]],
    );
    const answers = await Promise.all(
      rows.map(({ uuid }) =>
        door.authenticator.authenticateDevice({
          username: uuid,
          password: deriveToken(keys, uuid, 1),
        }),
      ),
    );
    expect(answers.every((answer) => answer !== null)).toBe(true);
    expect(door.queries).toBeLessThanOrEqual(10);
  });

  test('that are wrong cost one query a second for each device, and do not lock out the right ones', async () => {
    const device = await app.device(token);
    const wrong = { username: device.uuid, password: 'wrong' };
    for (let n = 0; n < 20; n += 1) {
      expect(await door.authenticator.authenticateDevice(wrong)).toBeNull();
    }
    expect(door.queries).toBe(1);
    expect(await door.authenticator.authenticateDevice(credentials(device))).not.toBeNull();
    expect(door.queries).toBe(1);
    door.timeMs += 1_001;
    await door.authenticator.authenticateDevice(wrong);
    expect(door.queries).toBe(2);
  });

  test('of strangers share queries', async () => {
    const strangers = Array.from({ length: 500 }, () => randomUUID());
    const answers = await Promise.all(
      strangers.map((username) =>
        door.authenticator.authenticateDevice({ username, password: 'x' }),
      ),
    );
    expect(answers.every((answer) => answer === null)).toBe(true);
    expect(door.queries).toBe(1);
  });
});

describe('rotation', () => {
  test('accepts the old token until the new one is first used', async () => {
    const device = await app.device(token);
    const old = credentials(device);
    // Over HTTP each request is a login.
    for (let n = 0; n < 3; n += 1) await door.letIn(old);
    const identity = await door.letIn(old);
    const fresh = await door.rotate(device, false);
    for (let n = 0; n < 3; n += 1) expect(await door.letIn(old)).toEqual(identity);
    expect(await door.authenticator.isStillAllowed(identity, old)).toBe(true);

    app.told.length = 0;
    expect(await door.letIn(fresh)).toEqual(identity);
    expect(await door.authenticator.authenticateDevice(old)).toBeNull();
    const { deviceId, uuid } = device;
    expect(app.told).toEqual([{ channel: 'access', message: { deviceId, uuid } }]);
    expect(await door.authenticator.isStillAllowed(identity, old)).toBe(false);
    expect(await door.authenticator.isStillAllowed(identity, fresh)).toBe(true);
  });

  test('twice retires the first token even if the second was never used', async () => {
    const device = await app.device(token);
    const second = await door.rotate(device, false);
    await door.rotate(device, false);
    expect(await door.authenticator.authenticateDevice(credentials(device))).toBeNull();
    expect(await door.authenticator.authenticateDevice(second)).not.toBeNull();
  });

  test('with revoke retires the old token at once', async () => {
    const device = await app.device(token);
    const identity = await door.authenticator.authenticateDevice(credentials(device));
    const fresh = await door.rotate(device, true);
    expect(await door.authenticator.authenticateDevice(credentials(device))).toBeNull();
    expect(await door.authenticator.authenticateDevice(fresh)).toEqual(identity);
  });
});
