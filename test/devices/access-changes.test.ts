import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Sql } from '../../src/db/sql.ts';
import { createDeviceAuthenticator } from '../../src/devices/authenticate.ts';
import { createDeviceIdentifier, deriveToken } from '../../src/devices/tokens.ts';
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

describe('a change that another process made', () => {
  test('takes effect once the bus announces it, or says that it may have missed one', async () => {
    const device = await app.device(token);
    const { deviceId, uuid } = device;
    const old = credentials(device);
    await door.authenticator.authenticateDevice(old);
    const raise = () =>
      app.db.query('update device set token_version = token_version + 1 where id = $1', [deviceId]);
    await raise();
    app.bus.publish('access', { deviceId, uuid });
    expect(await door.authenticator.authenticateDevice(old)).toBeNull();

    const fresh = { username: uuid, password: deriveToken(keys, uuid, 2) };
    app.bus.publish('resync', {});
    expect(await door.authenticator.authenticateDevice(fresh)).not.toBeNull();
    await raise();
    app.bus.publish('resync', {});
    expect(await door.authenticator.authenticateDevice(fresh)).toBeNull();
  });

  test('takes effect for a look-up under way too', async () => {
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
    const slowAuthenticator = createDeviceAuthenticator({
      db: slow,
      keys,
      secretIds,
      bus: app.bus,
      clock: Date.now,
    });
    const answer = slowAuthenticator.authenticateDevice(credentials(device));
    await read;
    holding = false;
    await app.db.query('update device set token_version = 2 where id = $1', [deviceId]);
    app.bus.publish('access', { deviceId, uuid });
    release();
    expect(await answer).toBeNull();
    slowAuthenticator.close();
  });

  test('a removal: nothing is accepted, and what was let in is no longer allowed', async () => {
    const device = await app.device(token);
    const identity = await door.letIn(credentials(device));
    await app.call('DELETE', `/v2/devices/${device.uuid}`, { token });
    expect(await door.authenticator.authenticateDevice(credentials(device))).toBeNull();
    expect(await door.authenticator.isStillAllowed(identity, credentials(device))).toBe(false);
  });
});

describe('while the database is unreachable', () => {
  test('a cached device is let in; one that is not cached is neither let in nor refused', async () => {
    const known = await app.device(token);
    const unknown = await app.device(token);
    await door.authenticator.authenticateDevice(credentials(known));
    door.away = true;
    const identity = await door.letIn(credentials(known));
    const unavailable = { code: 'unavailable' };
    await expect(door.authenticator.authenticateDevice(credentials(unknown))).rejects.toMatchObject(
      unavailable,
    );
    const wrong = { username: known.uuid, password: 'wrong' };
    await expect(door.authenticator.authenticateDevice(wrong)).rejects.toMatchObject(unavailable);
    await expect(
      door.authenticator.isStillAllowed(identity, credentials(known)),
    ).rejects.toMatchObject(unavailable);
    door.away = false;
    expect(await door.authenticator.authenticateDevice(credentials(unknown))).not.toBeNull();
  });

  test('a new token is accepted, and retires the old one later', async () => {
    const device = await app.device(token);
    const fresh = await door.rotate(device, false);
    await door.letIn(credentials(device));
    door.away = true;
    await door.letIn(fresh);
    door.away = false;
    await door.letIn(credentials(device));
    await door.letIn(fresh);
    expect(await door.authenticator.authenticateDevice(credentials(device))).toBeNull();
  });
});

describe('a disabled account', () => {
  const set = (accountId: number, isDisabled: boolean) =>
    app.db.query('update account set disabled_at = case when $2 then now() end where id = $1', [
      accountId,
      isDisabled,
    ]);

  test('has no device that is let in, cached or not, until it is enabled', async () => {
    const owner = await app.account();
    const [known, unknown] = [await app.device(owner), await app.device(owner)];
    const { accountId } = known;
    const identity = await door.letIn(credentials(known));
    const other = await app.device(token);
    await set(accountId, true);
    // The database knows at once, the process a moment later.
    expect(await door.authenticator.isStillAllowed(identity, credentials(known))).toBe(false);
    expect(await door.authenticator.authenticateDevice(credentials(unknown))).toBeNull();
    door.disabled.add(accountId);
    const before = door.queries;
    expect(await door.authenticator.authenticateDevice(credentials(known))).toBeNull();
    expect(door.queries).toBe(before);
    expect(await door.authenticator.authenticateDevice(credentials(other))).not.toBeNull();

    await set(accountId, false);
    door.disabled.delete(accountId);
    door.timeMs += 1_000;
    for (const device of [known, unknown])
      expect(await door.authenticator.authenticateDevice(credentials(device))).toMatchObject({
        accountId,
      });
  });

  test('has no device that can be found by uuid alone, as a bridge does', async () => {
    const owner = await app.account();
    const [known, unknown] = [await app.device(owner), await app.device(owner)];
    const { accountId } = known;
    const disabled = new Set<number>();
    const isDisabled = (id: number) => disabled.has(id);
    const identifier = createDeviceIdentifier({ db: app.db, bus: app.bus, isDisabled });
    expect(await identifier.identify(known.uuid)).toMatchObject({ accountId });
    await set(accountId, true);
    expect(await identifier.identify(unknown.uuid)).toBeNull();
    disabled.add(accountId);
    expect(await identifier.identify(known.uuid)).toBeNull();
    await set(accountId, false);
    disabled.clear();
    for (const { uuid } of [known, unknown])
      expect(await identifier.identify(uuid)).toMatchObject({ accountId, uuid });
    identifier.close();
  });
});
