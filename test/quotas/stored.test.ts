import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { forgetPersons } from '../../src/history/clear-removed.ts';
import { deleteAccount } from '../../src/accounts/account.ts';
import defaults from '../../config/default.ts';
import { removeOverride, saveOverride, startOverrides } from '../../src/quotas/quotas.ts';
import { configuration, purpose, startApp, untilTaken, type App } from '../devices/app.ts';
import { databaseKinds } from '../support/database.ts';

type Entry = { quota: string; limit: number; used: number | null };

async function usageOf(app: App, token: string): Promise<Record<string, Entry>> {
  const { body } = await app.call('GET', '/v2/accounts/usage', { token });
  return Object.fromEntries((body['usage'] as Entry[]).map((entry) => [entry.quota, entry]));
}

describe.each(databaseKinds)('what an account has stored, on %s', (kind) => {
  const quotas = { devices: 10, devicesPerDay: 25, purposes: 10, purposeBytes: 4_000 };
  let one: App;
  let other: App;
  beforeAll(async () => {
    one = await startApp({ kind, quotas });
    other = await startApp({ beside: one.database, quotas });
  });
  afterAll(async () => {
    await other?.close();
    await one?.close();
  });

  /** Sends the same request to two processes alternately, all at once. */
  async function storm(token: string, path: string, body: unknown, count = 300) {
    const apps = Array.from({ length: count }, (_, i) => (i % 2 === 0 ? one : other));
    const answers = await Promise.all(
      apps.map((app) => untilTaken(() => app.call('POST', path, { token, body }))),
    );
    return {
      stored: answers.filter(({ status }) => status === 200),
      refused: answers.filter(({ status }) => status === 403),
    };
  }
  const count = async (table: string, token: string) => {
    const { rows } = await one.db.query<{ count: number }>(
      `select count(*) from ${table} where account_id = $1`,
      [token],
    );
    return rows[0]?.count;
  };

  it('is exactly its quota of devices, after 300 registrations at two processes', async () => {
    const token = await one.account();
    const { stored, refused } = await storm(token, '/v2/devices', configuration);
    expect([stored.length, refused.length]).toEqual([10, 290]);
    expect(await count('device', token)).toBe(10);
    expect(refused[0]?.body).toMatchObject({
      type: 'urn:sensorium:error:quota-exceeded',
      status: 403,
      quota: 'devices',
      limit: 10,
      used: 10,
    });
    expect(await usageOf(one, token)).toMatchObject({
      devices: { limit: 10, used: 10 },
      devicesPerDay: { limit: 25, used: 10 },
    });
  });

  it('has room again when a device is removed, up to the registrations of a day', async () => {
    const token = await one.account();
    for (let round = 0; round < 25; round += 1) {
      const { uuid } = await one.device(token);
      expect((await other.call('DELETE', `/v2/devices/${uuid}`, { token })).status).toBe(200);
    }
    const { stored, refused } = await storm(token, '/v2/devices', configuration, 10);
    expect(stored).toEqual([]);
    expect(refused[0]?.body).toMatchObject({ quota: 'devicesPerDay', limit: 25, used: 25 });
    await one.db.query(
      'update account_usage set registrations_day = registrations_day - 1 where account_id = $1',
      [token],
    );
    expect((await one.call('POST', '/v2/devices', { token, body: configuration })).status).toBe(
      200,
    );
    expect(await usageOf(one, token)).toMatchObject({
      devices: { used: 1 },
      devicesPerDay: { used: 1 },
    });
  });

  it('is exactly its quota of purposes, also by their bytes', async () => {
    const few = await one.account();
    const { stored, refused } = await storm(few, '/v2/purposes', purpose(7));
    const path = `/v2/purposes/${String(stored[0]?.body['purposeUuid'])}`;
    const { text } = await one.call('GET', path, { token: few });
    const bytes = Buffer.byteLength(text);
    const fit = Math.min(10, Math.floor(4_000 / bytes));
    expect([stored.length, refused.length]).toEqual([fit, 300 - fit]);
    expect(await count('purpose', few)).toBe(fit);
    expect(await usageOf(other, few)).toMatchObject({
      purposes: { used: fit, limit: 10 },
      purposeBytes: { used: fit * bytes, limit: 4_000 },
    });
  });

  it('counts a purpose that grows, shrinks and is removed', async () => {
    const token = await one.account();
    const small = purpose(1);
    const states = Array.from({ length: 40 }, (_, stId) => ({ stId, name: 'x'.repeat(20) }));
    const large = { ...small, states };
    const post = (body: unknown) => one.call('POST', '/v2/purposes', { token, body });
    const put = async (uuid: string, body: unknown) =>
      one.call('PUT', `/v2/purposes/${uuid}`, { token, body });
    const [first, second] = await Promise.all([post(small), post(small)]);
    const [a, b] = [String(first.body['purposeUuid']), String(second.body['purposeUuid'])];
    expect((await put(a, large)).status).toBe(200);
    const before = (await usageOf(one, token))['purposeBytes']?.used;
    const refused = await put(b, large);
    expect(refused.body).toMatchObject({ status: 403, quota: 'purposeBytes', used: before });
    expect((await one.call('GET', `/v2/purposes/${b}`, { token })).body).toMatchObject(small);

    // What is stored over a quota stays, and may be replaced by something no longer.
    await saveOverride(one.db, Number(token), 'purposeBytes', 100);
    expect((await put(a, { ...large, name: 'p' })).status).toBe(200);
    expect((await put(a, small)).status).toBe(200);
    for (const uuid of [a, b]) await one.call('DELETE', `/v2/purposes/${uuid}`, { token });
    expect(await usageOf(one, token)).toMatchObject({
      purposes: { used: 0 },
      purposeBytes: { used: 0, limit: 100 },
    });
    expect((await post(small)).body).toMatchObject({ quota: 'purposeBytes', limit: 100, used: 0 });
  });

  it('is counted for each account separately, with its own limits', async () => {
    const [raised, lowered] = [await one.account(), await one.account()];
    await saveOverride(one.db, Number(raised), 'devices', 12);
    await saveOverride(one.db, Number(lowered), 'devices', 3);
    const [more, fewer] = await Promise.all(
      [raised, lowered].map((token) => storm(token, '/v2/devices', configuration, 40)),
    );
    expect([more?.stored.length, fewer?.stored.length]).toEqual([12, 3]);
  });

  it("includes connected devices and today's messages to people", async () => {
    const token = await one.account();
    const [first, second] = [await one.device(token), await one.device(token)];
    await one.db.query(
      `insert into presence (device_id, connected)
       select id, uuid = $1 from device where uuid = any($2::uuid[])
       on conflict (device_id) do update set connected = excluded.connected`,
      [first.uuid, [first.uuid, second.uuid]],
    );
    await one.db.query(
      `insert into message_count (kind, account_id, key, day, used)
       values ('account', $1, '', (now() at time zone 'UTC')::date, 7),
              ('sms', $1, '', (now() at time zone 'UTC')::date - 1, 5),
              ('recipient', $1, 'token', (now() at time zone 'UTC')::date, 4)`,
      [token],
    );
    expect(await usageOf(other, token)).toMatchObject({
      connections: { limit: 10_000, used: 1 },
      messagesPerDay: { limit: 1_000, used: 7 },
      messagesPerRecipient: { used: null },
      smsPerDay: { limit: 20, used: 0 },
    });
    await saveOverride(one.db, Number(token), 'smsPerDay', 50);
    expect((await usageOf(other, token))['smsPerDay']).toEqual({
      quota: 'smsPerDay',
      limit: 50,
      used: 0,
    });
  });

  it('are logins by address, if the account has a limit of its own', async () => {
    const token = await one.account();
    const { rows } = await one.db.query<{ email: string }>(
      'select email from account where id = $1',
      [token],
    );
    const email = rows[0]?.email ?? '';
    const errors: unknown[] = [];
    const limits = await startOverrides({
      db: one.db,
      quotas: defaults.quotas,
      intervalMs: 10,
      onError: (error) => void errors.push(error),
    });
    const both = () => [limits.loginsOf(email), limits.limitsOf(Number(token)).smsPerDay];
    try {
      expect(both()).toEqual([60, 20]);
      await saveOverride(one.db, Number(token), 'loginsPerAccount', 7);
      await saveOverride(one.db, Number(token), 'smsPerDay', 8);
      await expect.poll(both).toEqual([7, 8]);
      expect(limits.loginsOf('somebody@example.org')).toBe(60);
      await removeOverride(one.db, Number(token), 'loginsPerAccount');
      await expect.poll(both).toEqual([60, 8]);
    } finally {
      await limits.close();
    }
    expect(errors).toEqual([]);
  });

  it('an account removed while it adds things is gone, with all of them', async () => {
    for (let round = 0; round < 5; round += 1) {
      const token = await one.account();
      const accountId = Number(token);
      const { uuid } = await one.device(token);
      const install = { deviceAuthUuids: [uuid], purposes: [purpose(1)] };
      const adding = [one, other, one, other].flatMap((app, i) => [
        app.call('POST', '/v2/devices', { token, body: configuration }),
        app.call('POST', '/v2/purposes', { token, body: purpose(i) }),
        app.call('POST', '/v2/devices/profile', { token, body: install }),
      ]);
      const deps = {
        db: one.db,
        runFairly: <T>(_turn: unknown, work: () => Promise<T>) => work(),
        revokeSessions: async () => {},
        forgetPersons,
        onAccountRemoved: () => {},
      };
      const removing = deleteAccount(deps, accountId, { address: '', who: '' });
      const [answers] = await Promise.all([Promise.all(adding), removing]);
      expect(answers.filter(({ status }) => ![200, 401, 404].includes(status))).toEqual([]);
      // Nothing can be added any more, so what is deleted now is everything.
      const late = await one.call('POST', '/v2/purposes', { token, body: purpose(9) });
      expect(late.status).toBe(401);
      await one.clearing.resume();
      for (const table of ['device', 'purpose', 'profile', 'profile_content', 'account_usage'])
        expect(await count(table, token)).toBe(0);
    }
  });

  it('never deadlocks, whatever happens at once', async () => {
    const token = await one.account();
    const devices = await Promise.all([1, 2, 3, 4].map(() => one.device(token)));
    const uuids = devices.map(({ uuid }) => uuid);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? one : other)).flatMap((app, i) => [
        app.call('POST', '/v2/devices', { token, body: configuration }),
        app.call('DELETE', `/v2/devices/${uuids[i % 4]}`, { token }),
        app.call('POST', '/v2/purposes', { token, body: purpose(i) }),
        app.call('POST', '/v2/devices/profile', {
          token,
          body: { deviceAuthUuids: uuids, purposes: [purpose(i)] },
        }),
      ]),
    );
    expect(answers.filter(({ status }) => status >= 500)).toEqual([]);
    expect((await usageOf(one, token))['devices']?.used).toBe(await count('device', token));
  });
});
