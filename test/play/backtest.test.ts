import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { compare } from '../../src/play/backtest.ts';
import { storedHistory } from '../../src/play/history.ts';
import { BacktestLine } from '../../src/play/schema.ts';
import { ask, openAccount } from '../idempotency/repeat.ts';
import { configuration, type Registration, thresholdPurpose } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService } from '../journeys/service.ts';
import { openTestDatabase } from '../support/database.ts';
import { type Measured, measureAt, minuteMs, warm } from './measured.ts';

const start = Date.now() - 7_200_000;
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

async function register(): Promise<Registration> {
  const { body } = await ask(service.url, { path: '/v2/devices', token, body: configuration });
  return body as Registration;
}

const measured = (uuid: string, values: Measured[]) => measureAt(db, { uuid, start, values });

type Line = { kind: string } & Record<string, unknown>;

const post = (body: object, as = token) =>
  fetch(`${service.url}/v2/backtests`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${as}`,
      'Content-Type': 'application/json',
      Accept: 'application/x-ndjson',
    },
    body: JSON.stringify(body),
  });

async function backtest(body: object): Promise<Line[]> {
  const response = await post(body);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  expect(response.headers.get('content-type')).toContain('application/x-ndjson');
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const read = JSON.parse(line) as Line;
      expect(BacktestLine.parse(read)).toEqual(read);
      return read;
    });
}

/** More than 8 for ten minutes. */
const long = (sId: string) => {
  const threshold = { forMs: 10 * minuteMs };
  const causes = [{ sId, threshold, thresholds: { isGt: 8 } }];
  return { eventLog: true, causes, actions: { alarm: true } };
};

const of = (lines: Line[], kind: string) => lines.filter((line) => line.kind === kind);
const end = start + 60 * minuteMs;

test('a profile fires on what was measured, by time and by values, and its alarms close', async () => {
  const { deviceAuthUuid } = await register();
  await measured(deviceAuthUuid, [
    [-5, 9],
    [0, 9],
    [20, 1],
    [30, 9],
    [35, 9],
    [59, 9],
  ]);
  const lines = await backtest({
    candidate: { purposes: [warm(8)] },
    devices: [deviceAuthUuid],
    start,
    end,
  });
  expect(lines[0]).toEqual({
    kind: 'started',
    playedFromTs: start - 10 * minuteMs,
    startTs: start,
    endTs: end,
    devices: 1,
  });
  const at = { puId: 1, stId: 1, evId: 1 };
  expect(of(lines, 'firing')).toMatchObject([
    { deviceAuthUuid, engine: { ...at, ts: start + 5 * minuteMs }, record: true },
    { deviceAuthUuid, engine: { ...at, ts: start + 40 * minuteMs }, record: true },
  ]);
  expect(of(lines, 'alarm')).toMatchObject([
    { ...at, sinceTs: start + 5 * minuteMs, closedTs: start + 20 * minuteMs, closedBy: 'cleared' },
    { ...at, sinceTs: start + 40 * minuteMs, beganTs: start + 30 * minuteMs, closedTs: null },
  ]);
  expect(of(lines, 'device')).toEqual([
    {
      kind: 'device',
      deviceAuthUuid,
      values: 6,
      firings: 2,
      moves: 0,
      alarms: 2,
      differences: 0,
      caveats: [],
    },
  ]);
  expect(lines.at(-1)).toMatchObject({ kind: 'done', devices: 1, values: 6, firings: 2 });
});

test('what came late is judged as it arrived, and what has no arrival as of its time, with a caveat', async () => {
  const { deviceAuthUuid } = await register();
  await measured(deviceAuthUuid, [
    [0, 30],
    [10, 1],
    // Later values had arrived by then.
    [5, 30, 20],
    [40, 30],
  ]);
  const asked = {
    candidate: { purposes: [thresholdPurpose(1, 20)] },
    devices: [deviceAuthUuid],
    start,
    end,
  };
  const firedAt = (lines: Line[]) =>
    of(lines, 'firing').map(({ engine }) => ((engine as { ts: number }).ts - start) / minuteMs);
  const lines = await backtest(asked);
  expect(firedAt(lines)).toEqual([0, 40]);
  expect(of(lines, 'device')).toMatchObject([{ caveats: [] }]);
  await db.query(
    `update measurement set arrived = null
      where series_id in (select s.id from series s join device d on d.id = s.device_id where d.uuid = $1)`,
    [deviceAuthUuid],
  );
  const unknown = await backtest(asked);
  expect(firedAt(unknown)).toEqual([0, 5, 40]);
  expect(of(unknown, 'device')).toMatchObject([{ caveats: ['no-arrivals'] }]);
});

test('two profiles differ where only one has an alarm, or where it began earlier', async () => {
  const { deviceAuthUuid } = await register();
  await measured(deviceAuthUuid, [
    [0, 6],
    [3, 9],
    [20, 1],
    [30, 6],
    [45, 1],
  ]);
  const lines = await backtest({
    candidate: { purposes: [warm(5)] },
    against: { purposes: [warm(8)] },
    devices: [deviceAuthUuid],
    start,
    end,
  });
  const at = { kind: 'difference', deviceAuthUuid, puId: 1, stId: 1, evId: 1 };
  expect(of(lines, 'difference').filter((line) => line['of'] === 'alarm')).toEqual([
    { ...at, of: 'alarm', ts: start + 10 * minuteMs, earlierMs: 3 * minuteMs },
    { ...at, of: 'alarm', ts: start + 40 * minuteMs, only: 'candidate' },
  ]);
});

test('two profiles are played on one reading, each on its own senses', async () => {
  const { deviceAuthUuid } = await register();
  await measured(deviceAuthUuid, [
    [0, 9],
    [20, 1],
    [30, 9],
    [59, 9],
  ]);
  const values: Measured[] = [
    [5, 9],
    [25, 1],
  ];
  await measureAt(db, { uuid: deviceAuthUuid, sId: '0x02', start, values });
  const purposeOf = (sIds: string[]) => {
    const [state, events] = [{ stId: 1 }, sIds.map((sId, n) => ({ evId: n + 1, ...long(sId) }))];
    return { purposes: [{ ...warm(8), states: [{ ...state, events }] }] };
  };
  const [one, both] = [purposeOf(['0x01']), purposeOf(['0x01', '0x02'])];
  const asked = { devices: [deviceAuthUuid], start, end };
  for (const [candidate, against, only] of [
    [one, both, 'against'],
    [both, one, 'candidate'],
  ] as const) {
    const alone = await backtest({ ...asked, candidate });
    const lines = await backtest({ ...asked, candidate, against });
    for (const kind of ['firing', 'alarm']) expect(of(lines, kind)).toEqual(of(alone, kind));
    const evId2 = { evId: 2, only, ts: start + 15 * minuteMs };
    expect(of(lines, 'difference')).toMatchObject([
      { of: 'firing', ...evId2 },
      { of: 'alarm', ...evId2 },
    ]);
    expect(of(lines, 'device')).toMatchObject([{ values: 6 }]);
  }
});

test('the installed profile on live values does what was recorded', async () => {
  const registration = await register();
  const { deviceAuthUuid } = registration;
  const profile = { purposes: [thresholdPurpose(1, 20)] };
  const body = { deviceAuthUuids: [deviceAuthUuid], ...profile };
  await ask(service.url, { path: '/v2/devices/profile', token, body });
  const device = await connectDevice(registration);
  const fromTs = Date.now() - 1_000;
  // The first one was measured hours before the range, and came in it.
  const late = { sId: '0x01', val: 30, ts: fromTs - 10_000_000 };
  await device.publish('up/measurements', late);
  for (const val of [1, 31, 32, 2, 33])
    await device.publish('up/measurements', { sId: '0x01', val });
  await device.end();
  const asked = { candidate: profile, devices: [deviceAuthUuid], start: fromTs };
  const same = await backtest({ ...asked, against: 'recorded' });
  expect(of(same, 'firing')).toHaveLength(4);
  expect(of(same, 'difference')).toEqual([]);
  const other = { purposes: [thresholdPurpose(1, 31)] };
  const fewer = await backtest({ ...asked, candidate: other, against: 'recorded' });
  expect(of(fewer, 'difference')).toMatchObject([{ only: 'against' }, { only: 'against' }]);
});

const at = { puId: 1, stId: 1, evId: 1 };
const pair = { from: at, to: { ...at, evId: 2 } };
const many = Array.from({ length: 21 }, (_, n) => ({ ...warm(8), puId: n + 1 }));
const tooMany = Array.from({ length: 10_001 }, () => '0f8fad5b-d9cb-469f-a165-70867728950e');

test.each([
  ['a profile without purposes', { candidate: {} }, '/candidate/purposeUuids'],
  ['more than 20 purposes', { candidate: { purposes: many } }, '/candidate/purposes'],
  ['more than 20 purposes to compare with', { against: { purposes: many } }, '/against'],
  ['more than 10,000 devices', { devices: tooMany }, '/devices'],
  ['pairs without a comparison', { map: [{ from: at, to: at }] }, '/map'],
  ['an event in two pairs', { against: 'recorded', map: [pair, { ...pair, to: at }] }, '/map'],
  ['no devices', { devices: undefined }, '/devices'],
  ['devices and a label', { label: 'one' }, '/devices'],
  ['more than 366 days', { start: 0 }, '/start'],
  ['an end before the start', { end: start - 1 }, '/end'],
])('%s is refused by name', async (_, changed, path) => {
  const { deviceAuthUuid } = await register();
  const candidate = { purposes: [warm(8)] };
  const response = await post({
    candidate,
    devices: [deviceAuthUuid],
    start,
    end,
    ...changed,
  });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ errors: [{ path }] });
});

test("nobody plays another account's devices or purposes", async () => {
  const { deviceAuthUuid } = await register();
  const stored = await ask(service.url, { path: '/v2/purposes', token, body: warm(8) });
  const uuid = JSON.stringify(stored.body).match(/[0-9a-f-]{36}/)?.[0] ?? '';
  const another = await openAccount(service.url);
  const asked = { devices: [deviceAuthUuid], start, end };
  expect((await post({ ...asked, candidate: { purposeUuids: [uuid] } })).status).toBe(200);
  expect((await post({ ...asked, candidate: { purposes: [warm(8)] } }, another)).status).toBe(404);
  const own = { ...asked, candidate: { purposeUuids: [uuid] } };
  expect((await post(own, another)).status).toBe(404);
});

test('a reader that leaves ends its thread, so that the account can run another', async () => {
  const { deviceAuthUuid } = await register();
  await measured(deviceAuthUuid, [[0, 9]]);
  const body = { candidate: { purposes: [warm(8)] }, devices: [deviceAuthUuid], start, end };
  for (let n = 0; n < 3; n += 1) {
    const response = await post(body);
    await response.body?.cancel();
  }
  expect(of(await backtest(body), 'done')).toHaveLength(1);
});

test('of one event, the closest are pairs, and each has one partner', () => {
  const at = { puId: 1, stId: 1, evId: 1 };
  const firings = (...times: number[]) => times.map((ts) => ({ ...at, ts }));
  const other = { puId: 1, stId: 1, evId: 2, ts: 0 };
  expect(compare(firings(0, 200_000), firings(190_000))).toEqual([
    { ...at, ts: 0, only: 'candidate' },
    { ...at, ts: 200_000, earlierMs: -10_000 },
  ]);
  expect(compare(firings(0), [...firings(300_001), other])).toEqual([
    { ...at, ts: 0, only: 'candidate' },
    { ...other, only: 'against' },
    { ...at, ts: 300_001, only: 'against' },
  ]);
  const alarm = (ts: number, closedTs: number | null) => ({ ...at, ts, closedTs });
  expect(compare([alarm(0, 9_000_000)], [alarm(-5, 10), alarm(400_000, null)])).toEqual([
    { ...at, ts: -5, only: 'against' },
    { ...at, ts: 0, earlierMs: 400_000 },
  ]);
});

test('firings of what came late, out of the order of their times, are compared as others', () => {
  const at = { puId: 1, stId: 1, evId: 1 };
  const own = [5_000_000, 0, 9_000_000].map((ts) => ({ ...at, ts }));
  expect(compare(own, own.toReversed())).toEqual([]);
});

test('events with other numbers are compared as the pairs say, and with nothing else', () => {
  const [from, to] = [at, { ...at, evId: 2 }];
  const own = [
    { ...from, ts: 0 },
    { ...to, ts: 1 },
  ];
  const theirs = [
    { ...to, ts: 5 },
    { ...from, ts: 7 },
  ];
  expect(compare(own, theirs, [{ from, to }])).toEqual([
    { ...from, ts: 0, earlierMs: 5 },
    { ...to, ts: 1, only: 'candidate' },
    { ...from, ts: 7, only: 'against' },
  ]);
});

test('ten thousand firings of one event, a second apart, are compared at once', () => {
  const at = { puId: 1, stId: 1, evId: 1 };
  const own = Array.from({ length: 10_000 }, (_, n) => ({ ...at, ts: n * 1_000 }));
  expect(compare(own, own)).toEqual([]);
  const later = own.map(({ ts, ...rest }) => ({ ...rest, ts: ts + 100 }));
  const differences = compare(own, later);
  expect(differences).toHaveLength(own.length);
  expect(differences.every(({ earlierMs }) => earlierMs === 100)).toBe(true);
});

test('what an event notifies of but does not record is not missing among what was recorded', async () => {
  const { deviceAuthUuid } = await register();
  const purpose = warm(8);
  for (const { events } of purpose.states) for (const event of events) event.eventLog = false;
  await measured(deviceAuthUuid, [
    [0, 9],
    [20, 9],
    [30, 1],
  ]);
  const asked = { candidate: { purposes: [purpose] }, devices: [deviceAuthUuid], start, end };
  const lines = await backtest({ ...asked, against: 'recorded' });
  expect(of(lines, 'firing')).toMatchObject([{ record: false }]);
  expect(of(lines, 'difference')).toMatchObject([{ of: 'alarm', only: 'candidate' }]);
});

/** The minutes of what is read in that many days before `start` and an hour after it, piece by piece. */
async function pieces(uuid: string, days: number, mostRows: number, from: Database = db) {
  const { rows } = await db.query<{ id: number }>('select id from device where uuid = $1', [uuid]);
  const arrivals = { fromTs: start - days * 86_400_000, untilTs: start + 60 * minuteMs };
  const read: number[][] = [];
  for await (const piece of storedHistory(from, mostRows).walk(rows[0]?.id ?? 0, arrivals, [
    '0x01',
  ])) {
    const minutes = Array.from({ length: piece.count }, (_, n) => piece.tsOf(n));
    read.push(minutes.map((ts) => (ts - start) / minuteMs));
  }
  return read;
}

test('after a long silence many values are read in pieces, and those of one millisecond together', async () => {
  const { deviceAuthUuid: uuid } = await register();
  const many = Array.from({ length: 40 }, (_, minute): Measured => [minute, 1]);
  await measured(uuid, [...many, [41, 1, 4], [42, 1, 3], [43, 1, 2], [44, 1, 1], [45, 1]]);
  const read = await pieces(uuid, 60, 4);
  expect(read.flat()).toEqual([...many.map(([minute]) => minute), 41, 42, 43, 44, 45]);
  const sizes = read.map(({ length }) => length);
  expect(sizes.filter((size) => size > 4)).toEqual([5]);
  // Not a read each for silent hours.
  expect(sizes.filter((size) => size === 0).length).toBeLessThan(60);
});

test('a piece whose reading is cancelled is read in shorter ones', async () => {
  const { deviceAuthUuid: uuid } = await register();
  await measured(uuid, [
    [1, 1],
    [2, 1],
  ]);
  let left = 3;
  const slow: Database = {
    ...db,
    async copyOut(statement, onRow) {
      left -= 1;
      if (left >= 0) await db.query(`do $$ begin raise exception using errcode = '57014'; end $$`);
      await db.copyOut(statement, onRow);
    },
  };
  expect((await pieces(uuid, 1, 100, slow)).flat()).toEqual([1, 2]);
  expect(left).toBeLessThan(0);
});
