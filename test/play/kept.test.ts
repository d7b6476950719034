import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { Database } from '../../src/db/database.ts';
import { forgetJobs } from '../../src/jobs/jobs.ts';
import { keepBacktest, type KeptWork } from '../../src/play/keep.ts';
import {
  BacktestList,
  BacktestSummary,
  listSchemas,
  PlayedDevices,
} from '../../src/play/schema.ts';
import { claimNext, forgetBacktests, lists, type LineKind } from '../../src/play/store.ts';
import { findActivity, listStoredBytes } from '../../src/quotas/activity.ts';
import { ask, openAccount } from '../idempotency/repeat.ts';
import { configuration } from '../journeys/app.ts';
import { testService } from '../journeys/service.ts';
import { openTestDatabase } from '../support/database.ts';
import { type Measured, measureAt, minuteMs, warm } from './measured.ts';

const start = Date.now() - 7_200_000;
const end = start + 60 * minuteMs;
let service: Awaited<ReturnType<typeof testService>>;
let db: Database;
let token: string;
beforeAll(async () => {
  service = await testService();
  db = openTestDatabase(service.databaseUrl);
});
afterAll(async () => {
  await db?.close();
  await service?.close();
});
beforeEach(async () => void (token = await openAccount(service.url)));

const get = (path: string, as = token) => ask(service.url, { method: 'GET', path, token: as });
const remove = (path: string, as = token) =>
  ask(service.url, { method: 'DELETE', path, token: as });
const post = (body: object, as = token) =>
  ask(service.url, { path: '/v2/backtests', token: as, body });

/** Devices with these values, in the order of their registration. */
async function measuring(...all: Measured[][]): Promise<string[]> {
  const devices = all.map(() => configuration);
  const { body } = await ask(service.url, { path: '/v2/devices/batch', token, body: { devices } });
  const registered = body['devices'] as { deviceAuthUuid: string }[];
  const uuids = registered.map(({ deviceAuthUuid }) => deviceAuthUuid);
  for (const [n, values] of all.entries())
    await measureAt(db, { uuid: uuids[n] ?? '', start, values });
  return uuids;
}

const values: Measured[] = [
  [-5, 9],
  [0, 9],
  [20, 1],
  [30, 9],
  [45, 1],
];

/** The path of a backtest that was asked for. */
async function asked(body: object, as = token): Promise<string> {
  const answer = await post({ candidate: { purposes: [warm(8)] }, start, end, ...body }, as);
  expect(answer.status, answer.text).toBe(200);
  return `/v2/backtests/${String(answer.body['backtestId'])}`;
}

async function ended(path: string, as = token): Promise<void> {
  const state = async () => (await get(path, as)).body['state'];
  await expect.poll(state, { timeout: 60_000 }).not.toBe('running');
}

/** All lines of a list, from pages of that size. */
async function linesOf(path: string, kind: LineKind, limit: number): Promise<object[]> {
  const all: object[] = [];
  let next: string | undefined = `${path}/${lists[kind]}?limit=${limit}`;
  while (next !== undefined) {
    const response: Response = await fetch(service.url + next, {
      headers: { Authorization: `Bearer ${token}` },
    });
    const page = listSchemas[kind].parse(await response.json());
    all.push(...((page as unknown as Record<string, object[]>)[lists[kind]] ?? []));
    next = /<([^>]*)>/.exec(response.headers.get('link') ?? '')?.[1];
  }
  return all;
}

async function streamed(path: string, body?: object): Promise<Record<string, unknown>[]> {
  const response = await fetch(service.url + path, {
    method: body ? 'POST' : 'GET',
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      Accept: 'application/x-ndjson',
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('what is kept is what is streamed, in pages of any size, and as lines', async () => {
  const devices = await measuring(values, [[0, 1]], values, values);
  const body = { candidate: { purposes: [warm(8)] }, against: 'recorded', devices, start, end };
  const lines = await streamed('/v2/backtests', body);
  const path = await asked({ ...body, name: 'warm' });
  await ended(path);
  for (const kind of Object.keys(lists) as LineKind[]) {
    const expected = lines.filter((line) => line['kind'] === kind);
    expect(await linesOf(path, kind, 2)).toEqual(expected);
    expect(await streamed(`${path}/${lists[kind]}`)).toEqual(expected);
    const ofOne = expected.filter((line) => line['deviceAuthUuid'] === devices[2]);
    expect(await streamed(`${path}/${lists[kind]}?device=${devices[2]}`)).toEqual(ofOne);
  }
  expect(await linesOf(path, 'firing', 1)).toHaveLength(6);
  const { kind: _kind, devices: count, ...counts } = lines.at(-1) ?? {};
  const { body: found } = await get(path);
  expect(BacktestSummary.parse(found)).toMatchObject({
    name: 'warm',
    state: 'done',
    done: count,
    of: 4,
    startTs: start,
    endTs: end,
    playedFromTs: start - 10 * minuteMs,
    counts,
    truncated: [],
  });
  const played = PlayedDevices.parse((await get(`${path}/devices`)).body).devices;
  const { kind: _device, ...first } = lines.find(({ kind }) => kind === 'device') ?? {};
  expect(played).toHaveLength(4);
  expect(played[0]).toEqual({ ...first, state: 'done' });
  const all = BacktestList.parse((await get('/v2/backtests')).body).backtests;
  expect(all).toEqual([BacktestSummary.omit({ timestamp: true }).parse(found)]);
  expect((await get(path.replace('backtests', 'jobs'))).body).toMatchObject({
    action: 'backtest',
    state: 'done',
    done: 4,
    of: 4,
  });
});

test('a backtest is removed with what was found, and a device with what was found of it', async () => {
  const [first = '', second = ''] = await measuring(values, values);
  const path = await asked({ devices: [first, second] });
  await ended(path);
  await remove(`/v2/devices/${first}`);
  expect((await get(path)).body).toMatchObject({ counts: { firings: 2 } });
  const { devices } = PlayedDevices.parse((await get(`${path}/devices`)).body);
  expect(devices.map(({ deviceAuthUuid }) => deviceAuthUuid)).toEqual([second]);
  expect(await linesOf(path, 'firing', 10)).toHaveLength(2);
  const rows = async () => {
    const { rows: found } = await db.query<{ count: number }>(
      `select count(*) as count from backtest_lines where account_id = (
         select account_id from device where uuid = $1)`,
      [second],
    );
    return found[0]?.count;
  };
  await expect.poll(rows, { timeout: 20_000 }).toBe(2);
  expect((await remove(path)).status).toBe(200);
  expect((await get(path)).status).toBe(404);
  expect((await get(path.replace('backtests', 'jobs'))).status).toBe(404);
  expect(await rows()).toBe(0);
});

test('a key with labels asks for its devices only, and sees what it asked for', async () => {
  const devices = await measuring(values, values);
  const path = `/v2/devices/actions`;
  const body = { action: 'label', labels: ['cellar'], deviceAuthUuids: devices.slice(0, 1) };
  const { body: job } = await ask(service.url, { path, token, body });
  await expect
    .poll(async () => (await get(`/v2/jobs/${String(job['jobId'])}`)).body['state'])
    .toBe('done');
  const makeKey = async (given: object) => {
    const made = { name: 'a program', scopes: ['data:read', 'devices:write'], ...given };
    const answer = await ask(service.url, { path: '/v2/accounts/keys', token, body: made });
    return String(answer.body['key']);
  };
  const own = await makeKey({ labels: ['cellar'] });
  const another = await makeKey({ labels: ['cellar'] });
  const all = await makeKey({});
  const reader = await makeKey({ scopes: ['data:read'] });
  const ofAccount = await asked({ devices });
  const refused = { candidate: { purposes: [warm(8)] }, devices, start, end };
  expect((await post(refused, own)).status).toBe(404);
  const ofKey = await asked({ label: 'cellar' }, own);
  await ended(ofAccount);
  await ended(ofKey, own);
  const seen = async (as: string) =>
    BacktestList.parse((await get('/v2/backtests', as)).body).backtests.map(
      ({ backtestId, of }) => [`/v2/backtests/${backtestId}`, of],
    );
  expect(await seen(own)).toEqual([[ofKey, 1]]);
  expect(await seen(another)).toEqual([]);
  expect(await seen(all)).toEqual([
    [ofKey, 1],
    [ofAccount, 2],
  ]);
  expect((await get(`${ofAccount}/firings`, own)).status).toBe(404);
  expect((await remove(ofAccount, own)).status).toBe(404);
  expect((await remove(ofAccount, reader)).status).toBe(403);
  await db.query(
    `update backtest_device set caveats = '{clock-break}'
      where device_id = (select id from device where uuid = $1)`,
    [devices[0]],
  );
  expect((await get(ofKey, own)).body['caveats']).toContain('clock-break');
  // What it may not see any more is not among what it found.
  const { body: other } = await ask(service.url, {
    path,
    token,
    body: { ...body, action: 'unlabel' },
  });
  await expect
    .poll(async () => (await get(`/v2/jobs/${String(other['jobId'])}`)).body['state'])
    .toBe('done');
  expect((await get(ofKey, own)).body).toMatchObject({ counts: { firings: 0 }, caveats: [] });
  expect((await get(`${ofKey}/firings`, own)).body['firings']).toEqual([]);
  expect((await get(`${ofKey}/devices`, own)).body['devices']).toEqual([]);
});

test('measurements are counted by an estimate, and what was not read is given back', async () => {
  const devices = await measuring(values);
  const used = async () => {
    const { body } = await get('/v2/accounts/usage');
    const usage = body['usage'] as { quota: string; used: number }[];
    return Object.fromEntries(usage.map(({ quota, used: it }) => [quota, it]));
  };
  await db.query(
    `insert into account_quota (account_id, quota, value)
     select account_id, 'backtestValuesPerDay', 1000000 from device where uuid = $1`,
    [devices[0]],
  );
  const path = await asked({ devices });
  await ended(path);
  await expect.poll(used).toMatchObject({ backtests: 1, backtestValuesPerDay: 5 });
  await remove(path);
  await streamed('/v2/backtests', { candidate: { purposes: [warm(8)] }, devices, start, end });
  await expect.poll(used).toMatchObject({ backtests: 0, backtestValuesPerDay: 10 });
});

test.each([
  ['backtests', 403],
  ['backtestValuesPerDay', 429],
])('more than the quota %s is refused by name', async (quota, status) => {
  const devices = await measuring(values);
  await ended(await asked({ devices }));
  await db.query(
    `insert into account_quota (account_id, quota, value)
     select account_id, $2, 1 from device where uuid = $1`,
    [devices[0], quota],
  );
  const profile = { purposes: [warm(8)] };
  const body = { candidate: profile, against: profile, devices, start, end };
  const refused = async () => {
    const answer = await post(body);
    if (answer.status === 200) await remove(`/v2/backtests/${String(answer.body['backtestId'])}`);
    return { status: answer.status, quota: answer.text.includes(quota) };
  };
  await expect.poll(refused, { timeout: 15_000 }).toEqual({ status, quota: true });
});

const uuidOf = (path: string) => path.split('/').at(-1) ?? '';

/** Asks for a backtest of these devices that no run takes up, as if one of another process played it. */
async function askedElsewhere(devices: string[]): Promise<{ path: string; jobId: number }> {
  const candidate = { purposes: [warm(8)] };
  return db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock(7213)');
    const path = await asked({ candidate, devices });
    const { rows } = await db.query<{ jobId: number }>(
      `update backtest set run = gen_random_uuid(), heard_at = clock_timestamp()
        where job_id = (select id from job where uuid = $1)
       returning job_id as "jobId"`,
      [uuidOf(path)],
    );
    return { path, jobId: rows[0]?.jobId ?? 0 };
  });
}

test('what a run left is done by another, and what that run keeps afterwards is not', async () => {
  const devices = await measuring(values, values, values);
  const { path, jobId } = await askedElsewhere(devices);
  const { rows } = await db.query<{ run: string; accountId: number; ids: number[] }>(
    `select run, account_id as "accountId",
            array(select device_id from backtest_device where backtest_id = b.job_id order by 1)::float8[] as ids
       from backtest b where job_id = $1`,
    [jobId],
  );
  const [{ run, accountId, ids } = { run: '', accountId: 0, ids: [] }] = rows;
  const rules = { ringMaxAgeMs: 900_000, reportedForMs: 3_600_000 };
  const candidate = [Purpose.parse(warm(8))];
  const workOf = (from: number, to: number): KeptWork => ({
    run,
    jobId,
    accountId,
    kept: {},
    isCareful: true,
    nowTs: Date.now(),
    backtest: {
      candidate,
      against: null,
      map: [],
      startTs: start,
      endTs: end,
      rules,
      devices: ids.slice(from, to).map((id, n) => ({
        id,
        uuid: devices[from + n] ?? '',
        listening: undefined,
      })),
    },
  });
  // It has done the first device, and was killed after it had kept something of the second.
  const began = workOf(0, 1);
  const first = new Promise<void>((resolve) => {
    const one = { ...db, transaction: breakAfter(2, resolve) };
    void keepBacktest(one, began).catch(() => undefined);
  });
  await first;
  await db.query(
    `insert into backtest_lines (backtest_id, account_id, device_id, kind, nth, count, body)
     select backtest_id, account_id, $2, kind, nth, count, body from backtest_lines where backtest_id = $1`,
    [jobId, ids[1]],
  );
  expect((await get(path)).body).toMatchObject({ state: 'running', done: 1 });
  await db.query(
    `update backtest set heard_at = heard_at - interval '1 minute' where job_id = $1`,
    [jobId],
  );
  await ended(path);
  const body = { candidate: { purposes: [warm(8)] }, devices, start, end };
  const lines = await streamed('/v2/backtests', body);
  for (const kind of ['firing', 'alarm'] as const)
    expect(await linesOf(path, kind, 100)).toEqual(lines.filter((line) => line['kind'] === kind));
  const before = (await get(path)).body;
  expect(await keepBacktest(db, workOf(1, 3))).toBe('lost');
  expect({ ...(await get(path)).body, timestamp: 0 }).toEqual({ ...before, timestamp: 0 });
});

/** Transactions until so many have committed; then none does. */
function breakAfter(count: number, onBroken: () => void): Database['transaction'] {
  let left = count;
  return async (work, options) => {
    if (left === 0) {
      onBroken();
      throw new Error('Killed.');
    }
    left -= 1;
    return db.transaction(work, options);
  };
}

test('a job that is stopped keeps what was found, and nothing after that', async () => {
  const devices = await measuring(values);
  const { path } = await askedElsewhere(devices);
  expect((await remove(path.replace('backtests', 'jobs'))).status).toBe(200);
  await db.query(
    `update backtest set heard_at = heard_at - interval '1 minute'
      where job_id = (select id from job where uuid = $1)`,
    [uuidOf(path)],
  );
  const settled = async () => {
    const { rows } = await db.query<{ reserved: number | null }>(
      'select reserved from backtest where job_id = (select id from job where uuid = $1)',
      [uuidOf(path)],
    );
    return rows[0]?.reserved;
  };
  await expect.poll(settled, { timeout: 20_000 }).toBeNull();
  expect((await get(path)).body).toMatchObject({ state: 'stopped', done: 0, of: 1 });
});

test('a device that fails three times is given up, and the others are not', async () => {
  const devices = await measuring(values, values, values);
  const [, bad = ''] = devices;
  await db.query(
    `create function fail_one() returns trigger language plpgsql as $$
     begin
       if new.device_id = (select id from device where uuid = '${bad}') then
         raise exception 'a device that fails';
       end if;
       return new;
     end $$;
     create trigger fail_one before insert on backtest_lines for each row execute function fail_one();`,
  );
  const path = await asked({ devices });
  await ended(path);
  await db.query('drop function fail_one cascade');
  expect((await install(path)).status).toBe(200);
  const { devices: played } = PlayedDevices.parse((await get(`${path}/devices`)).body);
  expect(played.map(({ state, firings }) => [state, firings])).toEqual([
    ['done', 2],
    ['failed', 0],
    ['done', 2],
  ]);
  expect((await get(path.replace('backtests', 'jobs'))).body).toMatchObject({
    state: 'done',
    failed: [{ deviceAuthUuid: bad, reason: 'internal-error' }],
  });
});

test('accounts take turns, with two at a time, and what has ended goes after 30 days', async () => {
  const one = token;
  const paths: string[] = [];
  await db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock(7213)');
    const devices = await measuring([]);
    for (let n = 0; n < 3; n += 1) paths.push(await asked({ devices }));
    token = await openAccount(service.url);
    paths.push(await asked({ devices: await measuring([]) }));
    const order: (number | undefined)[] = [];
    for (let n = 0; n < 4; n += 1)
      order.push((await claimNext(tx, crypto.randomUUID(), 7213))?.jobId);
    const { rows } = await tx.query<{ id: number }>(
      'select id from job where uuid = any($1::uuid[]) order by id',
      [paths.map(uuidOf)],
    );
    const [first, second, , other] = rows.map(({ id }) => id);
    expect(order).toEqual([first, other, second, undefined]);
    await tx.query('update backtest set run = null');
    // The first account has waited longest, but one of its backtests is played.
    const again = async () => (await claimNext(tx, crypto.randomUUID(), 7213))?.jobId;
    await tx.query(
      `update job set served_at = clock_timestamp() + interval '1 minute' where id = $1`,
      [other],
    );
    await again();
    expect(await again()).toBe(other);
    await tx.query('update backtest set run = null');
  });
  for (const [n, path] of paths.entries()) await ended(path, n < 3 ? one : token);
  const [old = ''] = paths;
  await db.query(`update job set ended_at = now() - interval '31 days' where uuid = $1`, [
    uuidOf(old),
  ]);
  const nowTs = Date.now();
  await forgetJobs(db, { accountId: null, keep: 0, sinceTs: nowTs, devicesSinceTs: nowTs });
  await forgetBacktests(db, nowTs - 30 * 86_400_000, new AbortController().signal);
  const left = async () => {
    const { body } = await get('/v2/backtests', one);
    return BacktestList.parse(body).backtests.map(({ backtestId }) => backtestId);
  };
  expect(await left()).toEqual(paths.slice(1, 3).map(uuidOf).toReversed());
});

const install = (path: string, as = token) =>
  ask(service.url, { path: `${path}/install`, token: as, body: undefined });

test('the candidate is installed once, on the devices that are left, also by two at once', async () => {
  const [one = '', gone = ''] = await measuring(values, values);
  const elsewhere = await askedElsewhere([one, gone]);
  expect((await install(elsewhere.path)).status).toBe(409);
  await remove(elsewhere.path);
  const path = await asked({ devices: [one, gone] });
  await ended(path);
  await remove(`/v2/devices/${gone}`);
  const answers = await Promise.all([install(path), install(path), install(path)]);
  const failed = [{ deviceAuthUuid: gone, reason: 'no-such-device' }];
  const [first] = answers;
  for (const { status, body } of answers)
    expect({ status, ...body }).toMatchObject({
      status: 200,
      state: 'pending',
      pId: first?.body['pId'],
      failed,
    });
  expect((await install(path)).body).toMatchObject({ pId: first?.body['pId'], failed });
  expect((await get(path)).body).toMatchObject({ pId: first?.body['pId'] });
  const { rows } = await db.query<{ pId: string }>(
    `select profile_id as "pId" from device_profile
      where device_id = (select id from device where uuid = $1)`,
    [one],
  );
  expect(rows).toEqual([{ pId: first?.body['pId'] }]);
  const rollOut = await get(`/v2/devices/profile/${String(first?.body['pId'])}`);
  expect(rollOut.body['devices']).toMatchObject([{ deviceAuthUuid: one, state: 'pending' }]);
  const another = await openAccount(service.url);
  expect((await install(path, another)).status).toBe(404);
});

/** What a backtest has kept and read. */
async function keptOf(path: string) {
  const { rows } = await db.query<{ id: number; bytes: number; read: number; stored: number }>(
    `select job_id as id, bytes, read,
            (select coalesce(sum(octet_length(body)), 0) from backtest_lines where backtest_id = job_id) as stored
       from backtest where job_id = (select id from job where uuid = $1)`,
    [uuidOf(path)],
  );
  return rows[0];
}

test('lines count into storedBytes, and what was read is added up', async () => {
  const devices = await measuring(values, values);
  const retention = { eventsDays: 90, measurementsDays: 90 };
  const accountId = async () => {
    const { rows } = await db.query<{ id: number }>(
      'select account_id as id from device where uuid = $1',
      [devices[0]],
    );
    return rows[0]?.id ?? 0;
  };
  const id = await accountId();
  const before = await findActivity(db, id, retention);
  const path = await asked({ devices });
  await ended(path);
  const kept = await keptOf(path);
  expect(kept).toMatchObject({ bytes: kept?.stored, read: 10 });
  expect(kept?.bytes).toBeGreaterThan(0);
  const after = await findActivity(db, id, retention);
  expect(after.storedBytes - before.storedBytes).toBe(kept?.bytes);
  expect((await listStoredBytes(db, retention)).get(id)).toBe(after.storedBytes);
});

test('a device that is given up keeps no lines, and where all were nothing is installed', async () => {
  const devices = await measuring(values);
  const { path, jobId } = await askedElsewhere(devices);
  await db.query(
    `with line as (
       insert into backtest_lines (backtest_id, account_id, device_id, kind, nth, count, body)
       select backtest_id, account_id, device_id, 'firing', 0, 1, decode('00', 'hex') from backtest_device where backtest_id = $1)
     update backtest set bytes = 1, failures = 3, heard_at = heard_at - interval '1 minute' where job_id = $1`,
    [jobId],
  );
  await ended(path);
  expect(await keptOf(path)).toMatchObject({ bytes: 0, stored: 0 });
  const refused = await install(path);
  expect([refused.status, refused.body['detail']]).toEqual([
    409,
    expect.stringContaining('given up'),
  ]);
});

test('a backtest is removed while lines of it are kept', async () => {
  const { path, jobId } = await askedElsewhere(await measuring(values));
  const removed = await db.transaction(async (tx) => {
    await tx.query('select from job where id = $1 for no key update', [jobId]);
    const removing = remove(path);
    const waits = async () => {
      const { rows } = await db.query(
        `select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%job%'`,
      );
      return rows.length;
    };
    await expect.poll(waits, { timeout: 20_000 }).toBeGreaterThan(0);
    await tx.query('update backtest set failures = 0 where job_id = $1', [jobId]);
    return { removing };
  });
  expect((await removed.removing).status).toBe(200);
});

test('while a process of an earlier version runs, none is stored', async () => {
  const devices = await measuring(values);
  const url = new URL(service.databaseUrl);
  url.searchParams.set('application_name', 'sensorium-0123');
  const earlier = new pg.Client(url.href);
  await earlier.connect();
  const refused = await post({ candidate: { purposes: [warm(8)] }, devices, start, end });
  await earlier.end();
  expect([refused.status, refused.body['detail']]).toEqual([
    409,
    expect.stringContaining('earlier version'),
  ]);
  await ended(await asked({ devices }));
});

test('an account that is locked does not keep another from what it gets back', async () => {
  const locked = await askedElsewhere(await measuring(values));
  const ofLocked = token;
  token = await openAccount(service.url);
  const { path, jobId } = await askedElsewhere(await measuring(values));
  const reserved = async () => {
    const { rows } = await db.query<{ reserved: number | null }>(
      'select reserved from backtest where job_id = $1',
      [jobId],
    );
    return rows[0]?.reserved;
  };
  await db.transaction(async (tx) => {
    await tx.query(
      `select from account_usage
        where account_id = (select account_id from job where id = $1) for update`,
      [locked.jobId],
    );
    const stop = `update job set state = 'stopped', ended_at = service_now() where id = $1`;
    await db.query(stop, [locked.jobId]);
    await db.query(stop, [jobId]);
    await expect.poll(reserved, { timeout: 20_000 }).toBeNull();
  });
  expect((await get(path)).body).toMatchObject({ state: 'stopped' });
  expect((await get(locked.path, ofLocked)).body).toMatchObject({ state: 'stopped' });
});
