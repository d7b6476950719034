import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { deriveKeys, deriveSecretCheck } from '../../src/config/keys.ts';
import { createDeviceAuthenticator } from '../../src/devices/authenticate.ts';
import { createTokenHandover, deriveToken } from '../../src/devices/tokens.ts';
import { countTokensOf, endChange, settleSecret } from '../../src/secret-check/secret-check.ts';
import { databaseKinds } from '../support/database.ts';
import { type App, startApp } from './app.ts';

const older = 'the older secret of a test, long enough to be one';
const newer = 'the newer secret of a test, long enough to be one';
const olderCheck = deriveSecretCheck(older);
const newerCheck = deriveSecretCheck(newer);
const ts = 1_700_000_000_000;

describe.each(databaseKinds)('while the secret is being changed, on %s', (kind) => {
  let app: App;
  let token: string;
  const ends: (() => void)[] = [];
  beforeAll(async () => void (app = await startApp({ kind })));
  beforeEach(async () => {
    token = await app.account();
    await settle(newer, older);
  });
  afterEach(() => ends.splice(0).forEach((end) => end()));
  afterAll(() => app?.close());

  /** A process starts with these secrets, the first one as SECRET: the database notes both, that one first. */
  async function settle(secret: string, previousSecret: string): Promise<void> {
    const config = { secret, previousSecret, secretPlace: 'SECRET', dataDir: '/nowhere' };
    await settleSecret(app.db, config, { info: () => undefined, warn: () => undefined });
  }

  /** A process that was given these secrets, the first one as SECRET. */
  function openProcess(secret: string, previous?: string) {
    const { deviceTokens: keys, secretIds } = deriveKeys(secret, previous);
    const { db, bus } = app;
    const clock = () => ts;
    const authenticator = createDeviceAuthenticator({ db, keys, secretIds, bus, clock });
    ends.push(() => authenticator.close());
    return {
      due: createTokenHandover({ db, keys, secretIds, clock }),
      letsIn: async (username: string, password: string) =>
        (await authenticator.authenticateDevice({ username, password })) !== null,
    };
  }

  /** A device that was registered under the older secret, with its tokens of both. */
  async function addDevice() {
    const { uuid, deviceId } = await app.device(token);
    const [ofOlder, ofNewer] = [older, newer].map((secret) => {
      const { deviceTokens, secretIds } = deriveKeys(secret);
      return { token: deriveToken(deviceTokens, uuid, 1), id: secretIds[0] };
    });
    await app.db.query('update device set token_secret = $2 where id = $1', [
      deviceId,
      ofOlder?.id,
    ]);
    return { uuid, deviceId, old: ofOlder?.token ?? '', fresh: ofNewer?.token ?? '' };
  }

  const secretOf = async (deviceId: number) => {
    const sql = 'select token_secret from device where id = $1';
    const { rows } = await app.db.query<{ token_secret: string }>(sql, [deviceId]);
    return rows[0]?.token_secret;
  };

  test('a device is handed its token of the new secret until it has logged in with it', async () => {
    const device = await addDevice();
    const process = openProcess(newer, older);
    const before = await countTokensOf(app.db, [olderCheck]);
    const message = { topic: 'token', payload: { deviceAuthToken: device.fresh, ts } };
    expect(await process.letsIn(device.uuid, device.old)).toBe(true);
    expect(await process.due(device.deviceId)).toEqual(message);
    // It forgot it, or never read it: nothing has changed, and it is sent again.
    expect(await process.letsIn(device.uuid, device.old)).toBe(true);
    expect(await process.due(device.deviceId)).toEqual(message);

    expect(await process.letsIn(device.uuid, device.fresh)).toBe(true);
    expect(await process.due(device.deviceId)).toBeNull();
    expect(await countTokensOf(app.db, [olderCheck])).toBe(before - 1);
    // Whoever has copied the old one is shut out, in a process that had remembered it too.
    expect(await process.letsIn(device.uuid, device.old)).toBe(false);
    expect(await process.letsIn(device.uuid, device.fresh)).toBe(true);
  });

  test('processes that have not got that far let it in with either, and hand over nothing', async () => {
    const device = await addDevice();
    await endChange(app.db, olderCheck);
    const behind = openProcess(older, newer);
    expect(await behind.letsIn(device.uuid, device.old)).toBe(true);
    expect(await behind.due(device.deviceId)).toBeNull();

    await settle(newer, older);
    const ahead = openProcess(newer, older);
    expect(await ahead.letsIn(device.uuid, device.fresh)).toBe(true);
    // The one behind had remembered it with the old one, and must not hand that out again.
    expect(await behind.letsIn(device.uuid, device.fresh)).toBe(true);
    expect(await behind.due(device.deviceId)).toBeNull();
    expect(await secretOf(device.deviceId)).toBe(newerCheck.slice(0, 8));
  });

  test('a change that is undone hands the earlier token back', async () => {
    const device = await addDevice();
    await openProcess(newer, older).letsIn(device.uuid, device.fresh);
    await settle(older, newer);
    const undone = openProcess(older, newer);
    expect(await undone.letsIn(device.uuid, device.fresh)).toBe(true);
    expect((await undone.due(device.deviceId))?.payload).toMatchObject({
      deviceAuthToken: device.old,
    });
    expect(await undone.letsIn(device.uuid, device.old)).toBe(true);
    expect(await undone.letsIn(device.uuid, device.fresh)).toBe(false);
  });

  test('a token that its owner made is left to its owner, and counts when it is used', async () => {
    const device = await addDevice();
    const process = openProcess(newer, older);
    await app.db.query(
      'update device set token_version = 2, previous_token_accepted = true where id = $1',
      [device.deviceId],
    );
    expect(await process.letsIn(device.uuid, device.old)).toBe(true);
    expect(await process.due(device.deviceId)).toBeNull();
    const made = deriveToken(deriveKeys(newer).deviceTokens, device.uuid, 2);
    expect(await process.letsIn(device.uuid, made)).toBe(true);
    expect(await process.letsIn(device.uuid, device.old)).toBe(false);
    expect(await secretOf(device.deviceId)).toBe(newerCheck.slice(0, 8));
  });

  test('one that is registered has the secret of its token from the beginning', async () => {
    const { deviceId, uuid } = await app.device(token);
    const own = await secretOf(deviceId);
    expect(own).toHaveLength(8);
    await app.db.query("update device set token_secret = 'another' where id = $1", [deviceId]);
    // Its owner makes it a new one: with `revoke` no token of before opens anything.
    await app.call('POST', `/v2/devices/${uuid}/token`, { token, body: { revoke: false } });
    expect(await secretOf(deviceId)).toBe('another');
    await app.call('POST', `/v2/devices/${uuid}/token`, { token, body: { revoke: true } });
    expect(await secretOf(deviceId)).toBe(own);
  });
});
