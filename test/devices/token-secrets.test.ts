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

  /** Starts with these secrets, the first one as SECRET: the database records both, that one first. */
  async function settle(secret: string, previousSecret: string): Promise<void> {
    const config = { secret, previousSecret, secretPlace: 'SECRET', dataDir: '/nowhere' };
    await settleSecret(app.db, config, { info: () => undefined, warn: () => undefined });
  }

  /** A process with these secrets, the first one as SECRET. */
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

  /** A device registered under the older secret, with its tokens of both. */
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

  test('a device gets its token of the new secret until it has logged in with it', async () => {
    const device = await addDevice();
    const process = openProcess(newer, older);
    const before = await countTokensOf(app.db, [olderCheck]);
    const message = { topic: 'token', payload: { deviceAuthToken: device.fresh, ts } };
    expect(await process.letsIn(device.uuid, device.old)).toBe(true);
    expect(await process.due(device.deviceId)).toEqual(message);
    // It forgot the token, or never read it: nothing has changed, and it is sent again.
    expect(await process.letsIn(device.uuid, device.old)).toBe(true);
    expect(await process.due(device.deviceId)).toEqual(message);

    expect(await process.letsIn(device.uuid, device.fresh)).toBe(true);
    expect(await process.due(device.deviceId)).toBeNull();
    expect(await countTokensOf(app.db, [olderCheck])).toBe(before - 1);
    // Whoever copied the old one is locked out, even by a process that had cached it.
    expect(await process.letsIn(device.uuid, device.old)).toBe(false);
    expect(await process.letsIn(device.uuid, device.fresh)).toBe(true);
  });

  test('processes that are not that far accept either token, and send nothing', async () => {
    const device = await addDevice();
    await endChange(app.db, olderCheck);
    const behind = openProcess(older, newer);
    expect(await behind.letsIn(device.uuid, device.old)).toBe(true);
    expect(await behind.due(device.deviceId)).toBeNull();

    await settle(newer, older);
    const ahead = openProcess(newer, older);
    expect(await ahead.letsIn(device.uuid, device.fresh)).toBe(true);
    // The process that is behind had cached the old one, and must not send that again.
    expect(await behind.letsIn(device.uuid, device.fresh)).toBe(true);
    expect(await behind.due(device.deviceId)).toBeNull();
    expect(await secretOf(device.deviceId)).toBe(newerCheck.slice(0, 8));
  });

  test('undoing a change sends the earlier token again', async () => {
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

  test('a token that its owner made is left to the owner, and counts when it is used', async () => {
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

  test('a newly registered device has the secret of its token from the beginning', async () => {
    const { deviceId, uuid } = await app.device(token);
    const own = await secretOf(deviceId);
    expect(own).toHaveLength(8);
    await app.db.query("update device set token_secret = 'another' where id = $1", [deviceId]);
    // Its owner makes a new one: with `revoke` no earlier token is accepted.
    await app.call('POST', `/v2/devices/${uuid}/token`, { token, body: { revoke: false } });
    expect(await secretOf(deviceId)).toBe('another');
    await app.call('POST', `/v2/devices/${uuid}/token`, { token, body: { revoke: true } });
    expect(await secretOf(deviceId)).toBe(own);
  });
});
