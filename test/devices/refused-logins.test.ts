import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createDeviceAuthenticator } from '../../src/devices/authenticate.ts';
import { forgetRefusedLogins, startLoginWatch } from '../../src/devices/refused-logins.ts';
import { type App, keys, secretIds, startApp } from './app.ts';
import type { Device } from './door.ts';

type Refused = { reason: string; address?: string; count: number; firstTs: number };

const minuteMs = 60_000;
let app: App;
let token: string;
/** The time of the process whose logins are watched. */
let nowTs: number;
let watch: ReturnType<typeof startLoginWatch>;
let authenticator: ReturnType<typeof createDeviceAuthenticator>;
const errors: unknown[] = [];

beforeAll(async () => void (app = await startApp()));
beforeEach(async () => {
  token = await app.account();
  nowTs = Date.now();
  errors.length = 0;
  ({ watch, authenticator } = openProcess());
});
afterEach(async () => {
  authenticator.close();
  await watch.close();
  expect(errors).toEqual([]);
});
afterAll(() => app?.close());

function openProcess() {
  const { db, bus } = app;
  const clock = () => nowTs;
  const onError = (error: unknown) => void errors.push(error);
  const one = startLoginWatch({ db, clock, onError, intervalMs: 5_000_000 });
  const deps = { db, keys, secretIds, bus, clock, watch: one };
  return { watch: one, authenticator: createDeviceAuthenticator(deps) };
}

/** Tries to log in, and returns whether it worked. */
const tryLogin = async (username: string, password: string, address = '192.0.2.7') =>
  (await authenticator.authenticateDevice({ username, password, address })) !== null;

async function listed(uuid: string, as = token): Promise<Refused[] | number> {
  const answer = await app.call('GET', `/v2/devices/${uuid}/refused-logins`, { token: as });
  return answer.status === 200 ? (answer.body['refusedLogins'] as Refused[]) : answer.status;
}

async function refusedTsOf(uuid: string): Promise<unknown> {
  const answer = await app.call('GET', '/v2/devices?limit=1000', { token });
  const devices = answer.body['devices'] as { uuid: string; refusedTs?: number }[];
  return devices.find((device) => device.uuid === uuid)?.refusedTs;
}

const rotate = async ({ uuid }: Device, revoke: boolean) =>
  String(
    (await app.call('POST', `/v2/devices/${uuid}/token`, { token, body: { revoke } })).body[
      'deviceAuthToken'
    ],
  );

describe('refused logins', () => {
  test('are stored with when, from where and why, and counted, until the device is let in', async () => {
    const device = await app.device(token);
    const firstTs = nowTs;
    expect(await tryLogin(device.uuid, 'wrong')).toBe(false);
    nowTs += 10;
    expect(await tryLogin(device.uuid.toUpperCase(), 'wrong')).toBe(false);
    await watch.flush();
    expect(await listed(device.uuid)).toEqual([
      {
        reason: 'wrong-token',
        message: expect.stringContaining('not a token of this device'),
        address: '192.0.2.7',
        count: 2,
        firstTs,
        timestamp: nowTs,
      },
    ]);
    expect(await refusedTsOf(device.uuid)).toBe(nowTs);
    nowTs += 1_000;
    expect(await tryLogin(device.uuid, device.password)).toBe(true);
    nowTs += 5_000_000;
    await watch.flush();
    expect(await refusedTsOf(device.uuid)).toBeUndefined();
    expect(await listed(device.uuid)).toHaveLength(1);
  });

  test('tell a retired token from a wrong one', async () => {
    const device = await app.device(token);
    await rotate(device, false);
    expect(await tryLogin(device.uuid, device.password)).toBe(true);
    const newest = await rotate(device, true);
    expect(await tryLogin(device.uuid, device.password)).toBe(false);
    nowTs += 2_000;
    expect(await tryLogin(device.uuid, 'x'.repeat(32))).toBe(false);
    nowTs += 10;
    expect(await tryLogin(device.uuid, newest)).toBe(true);
    await watch.flush();
    expect(await listed(device.uuid)).toMatchObject([
      { reason: 'wrong-token' },
      { reason: 'retired-token' },
    ]);
    // It was let in after them, before they were written.
    expect(await refusedTsOf(device.uuid)).toBeUndefined();
  });

  test('of a removed device and of a disabled account are shown to its owner only', async () => {
    const stranger = await app.account();
    const [gone, disabled] = [await app.device(token), await app.device(stranger)];
    await app.call('DELETE', `/v2/devices/${gone.uuid}`, { token });
    await app.db.query('update account set disabled_at = now() where id = $1', [stranger]);
    expect(await tryLogin(gone.uuid, gone.password)).toBe(false);
    expect(await tryLogin(disabled.uuid, disabled.password)).toBe(false);
    const nobodys = randomUUID();
    expect(await tryLogin(nobodys, 'wrong')).toBe(false);
    await watch.flush();
    expect(await listed(gone.uuid)).toMatchObject([{ reason: 'device-removed', count: 1 }]);
    expect(await listed(disabled.uuid, stranger)).toMatchObject([{ reason: 'account-disabled' }]);
    expect(await listed(gone.uuid, stranger)).toBe(404);
    for (const uuid of [disabled.uuid, nobodys]) expect(await listed(uuid)).toBe(404);
    expect(await listed('removed')).toMatchObject([
      { deviceAuthUuid: gone.uuid, name: expect.any(String), reason: 'device-removed', count: 1 },
    ]);
    expect(await listed('removed', stranger)).toEqual([]);
    const kept = await app.db.query('select from refused_login where uuid = $1', [nobodys]);
    expect(kept.rowCount).toBe(0);
    await forgetRefusedLogins(app.db, nowTs + 31 * 24 * 60 * minuteMs);
    expect(await listed(gone.uuid)).toBe(404);
  });

  test('with a valid token count after the login that was counted for it', async () => {
    const device = await app.device(token);
    expect(await tryLogin(device.uuid, device.password)).toBe(true);
    watch.refused({ ...device, reason: 'too-many-connections' });
    await watch.flush();
    nowTs += 5_000_000;
    await watch.flush();
    expect(await listed(device.uuid)).toMatchObject([{ reason: 'too-many-connections' }]);
    expect(await refusedTsOf(device.uuid)).toBeDefined();
  });

  test('at one process are over when the device is let in at another, whichever is written first', async () => {
    const device = await app.device(token);
    const other = openProcess();
    await tryLogin(device.uuid, 'wrong');
    await watch.flush();
    nowTs += 2_000;
    // Its write waits for a minute.
    await tryLogin(device.uuid, 'wrong', '192.0.2.8');
    nowTs += 1_000;
    other.watch.letIn(device);
    nowTs += 30_000;
    await other.watch.flush();
    nowTs += 40_000;
    await watch.flush();
    nowTs += 5_000_000;
    await other.watch.flush();
    await other.watch.flush();
    expect(await listed(device.uuid)).toHaveLength(2);
    expect(await refusedTsOf(device.uuid)).toBeUndefined();
    other.authenticator.close();
    await other.watch.close();
  });
});

test('a device that logs in with each message counts as let in for the database too', async () => {
  const device = await app.device(token);
  await tryLogin(device.uuid, 'wrong');
  await watch.flush();
  expect(await refusedTsOf(device.uuid)).toBe(nowTs);
  for (let n = 0; n < 3; n += 1) {
    nowTs += 4_000_000;
    expect(await tryLogin(device.uuid, device.password)).toBe(true);
    await watch.flush();
  }
  expect(await refusedTsOf(device.uuid)).toBeUndefined();
  // Refused in between, and let in again.
  nowTs += 1_000;
  await tryLogin(device.uuid, 'wrong');
  nowTs += 1_000;
  await tryLogin(device.uuid, device.password);
  nowTs += 5_000_000;
  await watch.flush();
  await watch.flush();
  expect(await refusedTsOf(device.uuid)).toBeUndefined();
});

describe('anybody who knows a uuid', () => {
  test('can cause one write a minute, and the newest 16 are kept', async () => {
    const device = await app.device(token);
    for (let minute = 0; minute < 6; minute += 1) {
      for (let n = 0; n < 100; n += 1)
        await tryLogin(device.uuid, 'wrong', `192.0.2.${(minute * 3 + n) % 250}`);
      await watch.flush();
      nowTs += 1_000;
      const before = await listed(device.uuid);
      await tryLogin(device.uuid, 'wrong', '198.51.100.1');
      await watch.flush();
      expect(await listed(device.uuid)).toEqual(before);
      nowTs += minuteMs;
    }
    const kept = await listed(device.uuid);
    expect(kept).toHaveLength(16);
    expect(kept).toContainEqual(expect.objectContaining({ address: '198.51.100.1', count: 5 }));
  });

  test('delays another account for one write at most', async () => {
    const { rows } = await app.db.query<{ uuid: string }>(
      `insert into device (account_id, connector_id, configuration)
       select $1, 1, '{}' from generate_series(1, 700) returning uuid`,
      [token],
    );
    for (const { uuid } of rows)
      watch.refused({ uuid, accountId: Number(token), reason: 'wrong-token' });
    const other = await app.account();
    const device = await app.device(other);
    await tryLogin(device.uuid, 'wrong');
    await watch.flush();
    expect(await listed(device.uuid, other)).toHaveLength(1);
    const written = async () =>
      (await app.db.query('select from refused_login where account_id = $1', [token])).rowCount;
    expect(await written()).toBe(499);
    await watch.flush();
    expect(await written()).toBe(700);
  });
});

test('the list has a filter and a count for refused devices', async () => {
  const [good, bad] = [await app.device(token), await app.device(token)];
  await tryLogin(good.uuid, good.password);
  await tryLogin(bad.uuid, 'wrong');
  const gone = await app.device(token);
  await app.call('DELETE', `/v2/devices/${gone.uuid}`, { token });
  await tryLogin(gone.uuid, gone.password);
  await watch.flush();
  const find = async (query: string) => {
    const { body } = await app.call('GET', `/v2/devices?${query}`, { token });
    const { devices, counts } = body as { devices: { uuid: string }[]; counts?: object };
    return { uuids: devices.map(({ uuid }) => uuid), counts };
  };
  expect(await find('refused=true&counts=true')).toMatchObject({
    uuids: [bad.uuid],
    counts: { all: 2, refused: 1 },
  });
  expect((await find('refused=false')).uuids).toEqual([good.uuid]);
});
