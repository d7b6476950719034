import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { saveProfileAnswers } from '../../src/profiles/downlinks.ts';
import { forgetSpans } from '../../src/profiles/history.ts';
import { removeUnusedProfiles } from '../../src/profiles/queries.ts';
import { type App, purpose, startApp } from '../devices/app.ts';

let app: App;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const never = new AbortController().signal;
type Device = Awaited<ReturnType<App['device']>>;
type Span = { pId: string; fromTs: number; untilTs: number | null; purposes: object[] | null };

/** Installs a profile that becomes current at `ts`. */
async function become(token: string, device: Device, limit: number, ts: number): Promise<string> {
  const pId = await app.install(token, [device.uuid], [purpose(7, limit)]);
  await app.db.transaction((tx) =>
    saveProfileAnswers(tx, [{ deviceId: device.deviceId, pId, state: 'current', ts }]),
  );
  return pId;
}

/** Of all pages. */
async function spansOf(token: string, device: Device, query = ''): Promise<Span[]> {
  return (await pagesOf(token, `/v2/devices/${device.uuid}/profiles${query}`)).flat();
}

async function pagesOf(token: string, path: string): Promise<Span[][]> {
  const pages: Span[][] = [];
  for (let next: string | undefined = path; next !== undefined;) {
    const page = await app.call('GET', next, { token });
    pages.push(page.body['profiles'] as Span[]);
    next = /<(.*)>/.exec(page.headers.get('link') ?? '')?.[1];
  }
  return pages;
}

describe('the profiles of a device over time', () => {
  test('say from when to when each was in force, who installed it and why', async () => {
    const token = await app.account();
    const device = await app.device(token);
    expect(await spansOf(token, device)).toEqual([]);
    const first = await become(token, device, 8, 1_000_000);
    const body = { deviceAuthUuids: [device.uuid], purposes: [purpose(7, 9)] };
    const path = '/v2/devices/profile?reason=the+door';
    const second = String((await app.call('POST', path, { token, body })).body['pId']);
    expect(await spansOf(token, device)).toMatchObject([{ pId: first, untilTs: null }]);
    await app.db.transaction((tx) =>
      saveProfileAnswers(tx, [
        { deviceId: device.deviceId, pId: second, state: 'current', ts: 2_000_000 },
      ]),
    );
    const purposes = [{ puId: 7, name: 'purpose 7' }];
    expect(await spansOf(token, device)).toMatchObject([
      {
        pId: second,
        fromTs: 2_000_000,
        untilTs: null,
        by: 'session',
        reason: 'the door',
        purposes,
      },
      { pId: first, fromTs: 1_000_000, untilTs: 2_000_000, by: 'session', purposes },
    ]);
    const audit = await app.call('GET', '/v2/accounts/audit?kinds=profile-installed', { token });
    expect(audit.body['entries']).toMatchObject([
      { details: { pId: second, reason: 'the door' } },
      { details: { pId: first } },
    ]);
  });

  test('answer which limits were in force at a time, also when no device needs them any more', async () => {
    const token = await app.account();
    const device = await app.device(token);
    for (const [n, limit] of [8, 9, 10].entries())
      await become(token, device, limit, (n + 1) * 1_000_000);
    await removeUnusedProfiles(app.db, never);
    const { rows } = await app.db.query<{ count: number }>(
      'select count(*)::int as count from profile_content where account_id = $1',
      [token],
    );
    expect(rows).toEqual([{ count: 1 }]);
    const usage = await app.call('GET', '/v2/accounts/usage', { token });
    expect(usage.text).toMatch(/"quota":"profiles"[^}]*"used":1\b/);
    for (const [ts, limit] of [
      [1_500_000, 8],
      [2_500_000, 9],
      [3_500_000, 10],
    ]) {
      const [span, ...others] = await spansOf(token, device, `?start=${ts}&end=${ts}`);
      expect(others).toEqual([]);
      expect(span?.purposes).toEqual([{ puId: 7, name: 'purpose 7' }]);
      const read = await app.call('GET', `/v2/profiles/${span?.pId}`, { token });
      expect(read.body['purposes']).toMatchObject([
        { states: [{ events: [{ causes: [{ thresholds: { isGt: limit } }] }] }, {}] },
      ]);
    }
    expect(await spansOf(token, device, '?end=500000')).toEqual([]);
  });

  test('come in pages', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const installed: string[] = [];
    for (let n = 1; n <= 5; n += 1) installed.push(await become(token, device, n, n * 1_000));
    const found: string[] = [];
    let next: string | undefined = `/v2/devices/${device.uuid}/profiles?limit=2`;
    while (next !== undefined) {
      const page = await app.call('GET', next, { token });
      found.push(...(page.body['profiles'] as Span[]).map(({ pId }) => pId));
      next = /<(.*)>/.exec(page.headers.get('link') ?? '')?.[1];
    }
    expect(found).toEqual(installed.toReversed());
  });

  test('come in shorter pages if their purposes are long', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const installed: string[] = [];
    for (let n = 1; n <= 4; n += 1) installed.push(await become(token, device, n, n * 1_000));
    await app.db.query(
      `update profile_content set bytes = 600000
        where id in (select content_id from profile where id = any($1::uuid[]))`,
      [installed],
    );
    await app.db.query(
      `update former_profile_content set bytes = 600000
        where id in (select former_content_id from profile where id = any($1::uuid[]))`,
      [installed],
    );
    const [first, second, third, fourth] = installed;
    const pages = await pagesOf(token, `/v2/devices/${device.uuid}/profiles`);
    expect(pages.map((page) => page.map(({ pId }) => pId))).toEqual([
      [fourth, third],
      [second, first],
    ]);
  });

  test('belong to the account', async () => {
    const [token, stranger] = [await app.account(), await app.account()];
    const device = await app.device(token);
    const pId = await become(token, device, 8, 1_000);
    await become(token, device, 9, 2_000);
    await removeUnusedProfiles(app.db, never);
    const path = `/v2/devices/${device.uuid}/profiles`;
    expect((await app.call('GET', path, { token: stranger })).status).toBe(404);
    expect((await app.call('GET', `/v2/profiles/${pId}`, { token: stranger })).status).toBe(404);
    expect((await app.call('GET', `/v2/profiles/${pId}`, { token })).status).toBe(200);
  });

  test('that were never in force leave nothing behind', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const pending = await app.install(token, [device.uuid], [purpose(7, 1)]);
    await become(token, device, 2, 1_000);
    await removeUnusedProfiles(app.db, never);
    expect((await app.call('GET', `/v2/profiles/${pending}`, { token })).status).toBe(404);
    expect(await spansOf(token, device)).toHaveLength(1);
  });

  test('are kept as long as events: the newest 1,000, and 16 MiB of purposes', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const [first, second, third] = [
      await become(token, device, 1, 1_000_000),
      await become(token, device, 2, 2_000_000),
      await become(token, device, 3, 3_000_000),
    ];
    await app.db.query('update profile_content set bytes = 10000000 where account_id = $1', [
      token,
    ]);
    await removeUnusedProfiles(app.db, never);
    expect(await spansOf(token, device)).toMatchObject([
      { pId: third, purposes: [{}] },
      { pId: second },
      { pId: first },
    ]);
    const kept = (await spansOf(token, device)).filter(({ purposes }) => purposes !== null);
    expect(kept).toHaveLength(2);
    await app.db.query(
      `insert into device_profile_span (device_id, profile_id, from_at, until_at)
       select $1, $2, ms_to_timestamp(n), ms_to_timestamp(n + 1) from generate_series(1, 1000) as n`,
      [device.deviceId, first],
    );
    await become(token, device, 4, 4_000_000);
    const { rows } = await app.db.query<{ count: number }>(
      'select count(*)::int as count from device_profile_span where device_id = $1',
      [device.deviceId],
    );
    expect(rows).toEqual([{ count: 1_000 }]);
    await forgetSpans(app.db, 3_500_000);
    expect(await spansOf(token, device)).toMatchObject([{ fromTs: 4_000_000 }, { pId: third }]);
  });
});
