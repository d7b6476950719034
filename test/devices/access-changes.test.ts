import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Sql } from '../../src/db/sql.ts';
import { createDeviceAuthenticator } from '../../src/devices/authenticate.ts';
import { deriveToken } from '../../src/devices/token.ts';
import { type App, keys, startApp } from './app.ts';
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
  test('counts once the bus tells of it, or says that it may have missed one', async () => {
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
    const identity = await door.letIn(credentials(device));
    await app.call('DELETE', `/v2/devices/${device.uuid}`, { token });
    expect(await door.authenticator.authenticateDevice(credentials(device))).toBeNull();
    expect(await door.authenticator.isStillAllowed(identity, credentials(device))).toBe(false);
  });
});

describe('with the store away', () => {
  test('a device that is known is let in, and one that is not is neither let in nor refused', async () => {
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

  test('a new token is let in, and retires the old one later', async () => {
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
