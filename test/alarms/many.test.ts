import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ListedAlarm } from '../../src/alarms/routes.ts';
import type { Database } from '../../src/db/database.ts';
import { openTestDatabase } from '../support/database.ts';
import { ask, openAccount } from '../idempotency/repeat.ts';
import {
  addDevice,
  type Freezer,
  type House,
  listAlarms,
  openHouse,
  send,
  tooWarm,
} from './house.ts';

const ends: (() => Promise<unknown>)[] = [];
let house: House;
let freezers: Freezer[];
let db: Database;
beforeAll(async () => {
  house = await openHouse(ends);
  db = openTestDatabase(house.service.databaseUrl);
  ends.push(db.close);
  freezers = [];
  for (let n = 0; n < 24; n += 1) freezers.push(await addDevice(house, [tooWarm()]));
  for (const freezer of freezers) await send(freezer, 9);
});
afterAll(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

type Job = {
  state: string;
  action: string;
  done: number;
  of: number;
  failed: unknown[];
  failedAlarms?: { alarmId: number; deviceAuthUuid?: string; reason: string; values?: unknown }[];
};

async function begin(body: object): Promise<string> {
  const { jobId } = await house.app.call<{ jobId: string }>('POST', '/v2/alarms/actions', body);
  return jobId;
}

async function finish(jobId: string): Promise<Job> {
  const find = () => house.app.call<Job>('GET', `/v2/jobs/${jobId}`);
  await expect.poll(async () => (await find()).state, { timeout: 60_000 }).not.toBe('running');
  return find();
}

const act = async (body: object) => finish(await begin(body));
const idsOf = (alarms: ListedAlarm[]) => alarms.map(({ alarmId }) => alarmId);
const listIds = async (query: string) =>
  idsOf(await listAlarms(house, `${query}&limit=100`)).toSorted((a, b) => a - b);

test('all that a filter matches is acknowledged, with a note, and audited in one line with its devices', async () => {
  const open = await listIds('?state=open');
  expect(open).toHaveLength(24);
  const filter = { event: 'too warm' };
  const jobId = await begin({ action: 'acknowledge', note: 'A power cut.', filter });
  expect(await finish(jobId)).toMatchObject({
    action: 'acknowledge',
    state: 'done',
    done: 24,
    of: 24,
    failed: [],
  });
  expect(await listIds('?state=acknowledged')).toEqual(open);
  const [alarm] = await listAlarms(house, '?limit=1');
  expect(alarm?.notes).toMatchObject([{ on: 'acknowledge', text: 'A power cut.' }]);
  type Audit = { entries: { kind: string; details: Record<string, unknown> }[] };
  const { entries } = await house.app.call<Audit>('GET', '/v2/accounts/audit?limit=10');
  expect(entries[0]).toMatchObject({
    kind: 'bulk-action',
    details: { jobId, action: 'acknowledge', alarms: 24, note: 'A power cut.' },
  });
  const named = entries[0]?.details['deviceAuthUuids'];
  expect(new Set(named as string[])).toEqual(new Set(freezers.map(({ uuid }) => uuid)));
  expect(entries.filter(({ kind }) => kind === 'alarm-acknowledged')).toEqual([]);
});

test('closing leaves open what holds and says why; with force it closes, and reopening the job takes it back', async () => {
  const [cold] = freezers;
  if (!cold) throw new Error('No freezer.');
  // The values of the others hold. This one is over, so there is nothing to close.
  await send(cold, 5);
  await expect.poll(() => listIds('?state=acknowledged')).toHaveLength(23);
  const left = await act({ action: 'close', filter: {} });
  expect(left).toMatchObject({ done: 23, of: 23 });
  expect(left.failedAlarms).toHaveLength(23);
  expect(left.failedAlarms?.[0]).toEqual({
    alarmId: expect.any(Number),
    deviceAuthUuid: expect.any(String),
    deviceName: expect.any(String),
    eventName: 'too warm',
    reason: 'condition-holds',
    values: [{ sId: '0x01', val: 9, ts: expect.any(Number) }],
  });
  const standing = await listIds('?state=acknowledged');
  expect(standing).toHaveLength(23);
  const jobId = await begin({ action: 'close', force: true, note: 'Moved.', filter: {} });
  const closed = await finish(jobId);
  expect(closed).toMatchObject({ done: 23, failed: [] });
  expect(closed).not.toHaveProperty('failedAlarms');
  expect(await listIds('?state=acknowledged')).toEqual([]);
  expect(await act({ action: 'reopen', jobId })).toMatchObject({ of: 23, done: 23, failed: [] });
  expect(await listIds('?state=acknowledged')).toEqual(standing);
});

test('named alarms are snoozed, those that do not exist fail by name, and the job undoes the snooze', async () => {
  const [first = 0, second = 0] = await listIds('?state=acknowledged');
  const untilTs = Date.now() + 3_600_000;
  const jobId = await begin({
    action: 'snooze',
    untilTs,
    reason: 'defrosting',
    alarmIds: [first, 999_999_999, second, first],
  });
  expect(await finish(jobId)).toMatchObject({
    action: 'snooze',
    untilTs,
    of: 3,
    done: 3,
    failedAlarms: [{ alarmId: 999_999_999, reason: 'no-such-alarm' }],
  });
  const snoozed = async () =>
    (await listAlarms(house, '?limit=100')).flatMap(({ alarmId, snoozed: by }) =>
      by ? [{ alarmId, reason: by.reason }] : [],
    );
  expect((await snoozed()).map(({ alarmId }) => alarmId)).toEqual([second, first]);
  expect((await snoozed())[0]).toMatchObject({ reason: 'defrosting' });
  await act({ action: 'unsnooze', jobId });
  expect(await snoozed()).toEqual([]);
});

test('of two alarms of an event that a job opens again, the older one takes the newer one in', async () => {
  const freezer = await addDevice(house, [tooWarm()]);
  const query = `?device=${freezer.uuid}`;
  const ids: number[] = [];
  for (let n = 0; n < 2; n += 1) {
    await send(freezer, 9);
    await expect.poll(() => listIds(`${query}&state=open`)).toHaveLength(1);
    const open = await listIds(`${query}&state=open`);
    ids.push(...open);
    await act({ action: 'close', force: true, alarmIds: open });
  }
  const job = await act({ action: 'reopen', alarmIds: ids });
  expect(job).toMatchObject({ done: 2, failed: [] });
  expect(job).not.toHaveProperty('failedAlarms');
  expect(await listAlarms(house, query)).toMatchObject([{ alarmId: ids[0], firings: 2 }]);
});

const closeByForce = (alarmIds: number[]) => act({ action: 'close', force: true, alarmIds });

test('undoing a job leaves what others did since, however long the job took', async () => {
  const [first = 0, second = 0, third = 0] = await listIds('?state=acknowledged');
  const alarmIds = [first, second, third];
  const jobId = await begin({ action: 'close', force: true, alarmIds });
  expect(await finish(jobId)).toMatchObject({ done: 3, failed: [] });
  // Somebody opens one again and closes it for another reason.
  await house.app.call('POST', `/v2/alarms/${second}/reopen`);
  await closeByForce([second]);
  // The job closed the others five minutes before it ended.
  await db.query(
    `update alarm set closed_at = closed_at - interval '5 minutes' where id = any($1::bigint[])`,
    [[first, third]],
  );
  const back = await act({ action: 'reopen', jobId });
  expect(back).toMatchObject({
    done: 3,
    failedAlarms: [{ alarmId: second, reason: 'conflict' }],
  });
  const states = await Promise.all(
    alarmIds.map((alarmId) =>
      house.app.call<{ alarm: ListedAlarm }>('GET', `/v2/alarms/${alarmId}`),
    ),
  );
  expect(states.map(({ alarm }) => alarm.state)).toEqual([
    'acknowledged',
    'closed',
    'acknowledged',
  ]);
  await db.query(`update job set ended_at = ended_at - interval '1 minute' where uuid = $1`, [
    jobId,
  ]);
  await expect(begin({ action: 'reopen', jobId })).rejects.toThrow(/^409 .*more than a minute ago/);
  await expect(begin({ action: 'unsnooze', jobId })).rejects.toThrow(/^400 .*\/jobId/);
});

test('undoing a snooze brings back the snoozes that it replaced, and leaves those made since', async () => {
  const [first = 0, second = 0, third = 0] = await listIds('?state=acknowledged');
  const inHours = (hours: number) => Math.floor(Date.now() / 1_000) * 1_000 + hours * 3_600_000;
  const [soon, later, latest] = [inHours(1), inHours(2), inHours(3)];
  const snooze = (alarmId: number, untilTs: number, reason: string) =>
    house.app.call('POST', `/v2/alarms/${alarmId}/snooze`, { untilTs, reason });
  await snooze(first, soon, 'defrosting');
  const alarmIds = [first, second, third];
  const jobId = await begin({ action: 'snooze', untilTs: later, reason: 'cleaning', alarmIds });
  await finish(jobId);
  await snooze(third, latest, 'being repaired');
  await act({ action: 'unsnooze', jobId });
  const snoozed = async (alarmId: number) => {
    const path = `/v2/alarms/${alarmId}`;
    return (await house.app.call<{ alarm: ListedAlarm }>('GET', path)).alarm.snoozed;
  };
  expect(await snoozed(first)).toMatchObject({ untilTs: soon, reason: 'defrosting' });
  expect(await snoozed(second)).toBeNull();
  expect(await snoozed(third)).toMatchObject({ untilTs: latest, reason: 'being repaired' });
  const { rows } = await db.query<{ nextTs: number }>(
    'select next_at as "nextTs" from alarm where id = any($1::bigint[]) order by next_at',
    [[first, third]],
  );
  expect(rows).toEqual([{ nextTs: soon }, { nextTs: latest }]);
});

test('says what is wrong with a request, and takes no key without the scope', async () => {
  const { url } = house.service;
  const token = await openAccount(url);
  const path = '/v2/alarms/actions';
  const problems = async (body: object) => {
    const { status, body: answer } = await ask(url, { path, token, body });
    expect(status).toBe(400);
    return (answer['errors'] as { path: string }[]).map((problem) => problem.path);
  };
  expect(await problems({ action: 'snooze', filter: {} })).toEqual(['/untilTs']);
  expect(await problems({ action: 'snooze', untilTs: 5, filter: {} })).toEqual(['/untilTs']);
  expect(await problems({ action: 'unsnooze', note: 'why', filter: {} })).toEqual(['/note']);
  expect(await problems({ action: 'close' })).toEqual(['/filter']);
  expect(await problems({ action: 'close', filter: { severety: 'info' } })).toEqual(['/filter']);
  expect(await problems({ action: 'close', filter: { label: 'a,b' } })).toEqual(['/filter/label']);
  const unknown = { action: 'reopen', jobId: crypto.randomUUID() };
  expect((await ask(url, { path, token, body: unknown })).status).toBe(404);
  const made = await ask(url, {
    path: '/v2/accounts/keys',
    token,
    body: { name: 'reads', scopes: ['alarms:read', 'devices:write'] },
  });
  const key = String(made.body['key']);
  const body = { action: 'acknowledge', filter: {} };
  expect((await ask(url, { path, token: key, body })).status).toBe(403);
});
