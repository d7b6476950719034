import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storeMeasurements } from '../../src/measurements/store.ts';
import * as app from '../events/app.ts';
import { databaseKinds } from '../support/database.ts';

type Bucket = {
  sId: string;
  ts: number;
  min: number;
  max: number;
  avg: number;
  count: number;
  last: number;
};
type Row = { sId: string; ts: number; val: number };

const hour = 3_600_000;
const t0 = Date.UTC(2026, 5, 1);

/** The expected buckets, counted by hand. */
function expectedBuckets(rows: Row[], width: number, start: number, end: number): Bucket[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows.filter(({ ts }) => ts >= start && ts <= end)) {
    const name = `${row.sId} ${Math.floor(row.ts / width) * width}`;
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups]
    .map(([name, points]) => {
      const [sId = '', ts = ''] = name.split(' ');
      const vals = points.map(({ val }) => val);
      return {
        sId,
        ts: Number(ts),
        min: Math.min(...vals),
        max: Math.max(...vals),
        avg: expect.closeTo(vals.reduce((a, b) => a + b, 0) / vals.length, 9) as number,
        count: vals.length,
        last: points.reduce((a, b) => (b.ts >= a.ts ? b : a)).val,
      };
    })
    .sort((a, b) => b.ts - a.ts || (a.sId < b.sId ? -1 : 1));
}

describe.each(databaseKinds)('buckets on %s', (kind) => {
  let history: app.OwnHistory;
  beforeAll(async () => {
    history = await app.openHistory(kind);
  });
  afterAll(() => history?.close());

  const store = (device: app.Device, rows: Row[]) =>
    history.db.transaction((tx) =>
      storeMeasurements(
        tx,
        rows.map((row) => ({ ...row, deviceId: device.deviceId })),
      ),
    );
  async function list(device: app.Device, query: string): Promise<Bucket[]> {
    const path = `/v2/measurements/${device.uuid}?${query}`;
    const body = await history.json(path, device.accountId);
    expect(body['timestamp']).toEqual(expect.any(Number));
    return body['buckets'] as Bucket[];
  }
  /** From a week before `t0` to tomorrow only: other tests store years, and each of their chunks takes time. */
  async function refresh(): Promise<void> {
    if (kind !== 'timescaledb') return;
    await history.db.query(
      `call refresh_continuous_aggregate('measurement_hour', ms_to_timestamp($1), now() + interval '1 d')`,
      [t0 - 7 * 24 * hour],
    );
  }

  test('count only points between start and end, whatever lies beyond them', async () => {
    const times = fc.integer({ min: 0, max: 40 * 24 * 12 }).map((n) => t0 + n * 300_000 + 1);
    const rowOf = fc.record({
      sId: fc.constantFrom('0x1', '0x2'),
      ts: times,
      val: fc.integer({ min: -50, max: 50 }),
    });
    const uniqueTimes = fc.uniqueArray(rowOf, {
      maxLength: 80,
      selector: ({ sId, ts }) => `${sId} ${ts}`,
    });
    await fc.assert(
      fc.asyncProperty(
        uniqueTimes,
        uniqueTimes,
        fc.constantFrom<[string, number]>(
          ['7m', 420_000],
          ['1h', hour],
          ['5h', 5 * hour],
          ['3d', 72 * hour],
        ),
        times,
        times,
        async (early, more, [bucket, width], a, b) => {
          const device = await app.newDevice(history.db);
          const late = more.filter((m) => !early.some((e) => e.sId === m.sId && e.ts === m.ts));
          await store(device, early);
          await refresh();
          await store(device, late);
          await refresh();
          const [start, end] = [Math.min(a, b), Math.max(a, b)];
          const rows = [...early, ...late];
          expect(await list(device, `bucket=${bucket}&start=${start}&end=${end}`)).toEqual(
            expectedBuckets(rows, width, start, end),
          );
          expect(await list(device, `bucket=${bucket}&senses=0x2`)).toEqual(
            expectedBuckets(
              rows.filter(({ sId }) => sId === '0x2'),
              width,
              0,
              Infinity,
            ),
          );
        },
      ),
      { numRuns: 20 },
    );
  });

  test('contain late arrivals at once in ranges of up to a week', async () => {
    const device = await app.newDevice(history.db);
    const newest = Date.now() - 10 * hour;
    await store(device, [
      { sId: '0x1', ts: newest - 30 * 24 * hour, val: 1 },
      { sId: '0x1', ts: newest, val: 3 },
    ]);
    await refresh();
    await store(device, [{ sId: '0x1', ts: newest - 24 * hour, val: 2 }]);
    const start = newest - 7 * 24 * hour;
    const vals = async (from: number) =>
      (await list(device, `bucket=1h&start=${from}&end=${newest}`)).map(({ last }) => last);
    expect(await vals(start)).toEqual([3, 2]);
    await refresh();
    expect(await vals(0)).toEqual([3, 2, 1]);
  });

  test.each([
    ['Europe/Berlin', '2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z', 23],
    ['Europe/Berlin', '2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z', 25],
    ['Australia/Lord_Howe', '2026-10-03T13:30:00Z', '2026-10-04T13:00:00Z', 23.5],
    ['Australia/Lord_Howe', '2026-04-04T13:00:00Z', '2026-04-05T13:30:00Z', 24.5],
    ['Atlantic/Azores', '2026-10-25T00:00:00Z', '2026-10-26T01:00:00Z', 25],
    ['Asia/Kathmandu', '2026-06-01T18:15:00Z', '2026-06-02T18:15:00Z', 24],
  ])('of days in %s follow its clocks: from %s to %s', async (tz, from, until, hours) => {
    const device = await app.newDevice(history.db);
    const [start, end] = [Date.parse(from), Date.parse(until)];
    const quarters = Array.from(
      { length: hours * 4 + 80 },
      (_, n) => start + (n - 40) * (hour / 4),
    );
    const rows = quarters.flatMap((ts) => ['0x1', '0x2'].map((sId) => ({ sId, ts, val: 1 })));
    await store(device, rows);
    const days = await list(device, `bucket=1d&tz=${tz}`);
    expect(days.filter(({ ts }) => ts === start)).toMatchObject([
      { sId: '0x1', count: hours * 4, avg: 1 },
      { sId: '0x2', count: hours * 4, avg: 1 },
    ]);
    expect(days.map(({ ts }) => ts)).toEqual(days.map(({ ts }) => ts).toSorted((a, b) => b - a));
    expect([...new Set(days.map(({ ts }) => ts))].slice(0, 2)).toEqual([end, start]);
    // What begins and ends within the day counts nothing of its neighbours.
    const inside = await list(device, `bucket=1d&tz=${tz}&start=${start + hour}&end=${end - 1}`);
    expect(inside.map(({ ts, count }) => [ts, count])).toEqual([
      [start, hours * 4 - 4],
      [start, hours * 4 - 4],
    ]);
  });

  test('of months and years begin where they do for many devices', async () => {
    const device = await app.newDevice(history.db);
    // Three years of days at noon and a single point long before: more rows than one statement returns.
    const noon = Date.UTC(2023, 0, 1, 12);
    const rows = Array.from({ length: 1_100 }, (_, n) => ({
      sId: n % 2 === 0 ? '0x1' : '0x2',
      ts: noon + n * 24 * hour,
      val: n,
    }));
    await store(device, [{ sId: '0x1', ts: Date.UTC(1999, 11, 31, 23, 30), val: -1 }, ...rows]);
    for (const query of [
      'bucket=1mo',
      'bucket=1mo&tz=Europe/Berlin',
      'bucket=12mo&tz=America/New_York',
      'bucket=1d&tz=Europe/Berlin',
      'bucket=6h&tz=Australia/Lord_Howe',
    ]) {
      const many = await history.json(
        `/v2/measurements?devices=${device.uuid}&order=desc&stats=min,max,avg,count,last&${query}`,
        device.accountId,
      );
      const expected = (many['buckets'] as (Bucket & { deviceAuthUuid: string })[]).map(
        ({ sId, ts, min, max, avg, count, last }) => ({ sId, ts, min, max, avg, count, last }),
      );
      expect(await list(device, query), query).toEqual(
        expected.toSorted((a, b) => b.ts - a.ts || (a.sId < b.sId ? -1 : 1)),
      );
    }
  });

  test('with a wrong zone, or a zone without buckets, are refused by name', async () => {
    const device = await app.newDevice(history.db);
    for (const query of ['bucket=1d&tz=Mars/Base', 'tz=Europe/Berlin']) {
      const answer = await history.get(
        `/v2/measurements/${device.uuid}?${query}`,
        device.accountId,
      );
      const { errors } = (await answer.json()) as { errors: { path: string }[] };
      expect([answer.status, errors[0]?.path]).toEqual([400, 'tz']);
    }
  });

  test('omit positions', async () => {
    const device = await app.newDevice(history.db);
    await history.db.transaction((tx) =>
      storeMeasurements(tx, [{ deviceId: device.deviceId, sId: '0x1', ts: t0, val: 1, long: 2 }]),
    );
    expect(await list(device, 'bucket=1h')).toEqual([]);
    await store(device, [{ sId: '0x1', ts: t0, val: 5 }]);
    await refresh();
    const [bucket] = await list(device, 'bucket=1h');
    expect(bucket).toMatchObject({ count: 1, min: 5, last: 5 });
  });

  test('survive values whose sum exceeds every number', async () => {
    const device = await app.newDevice(history.db);
    const rows = Array.from({ length: 400 }, (_, i) => ({
      sId: '0x1',
      ts: t0 + i * hour,
      val: 1.7e308,
    }));
    await store(device, [...rows, { sId: '0x1', ts: t0 + 1, val: 1.7e308 }]);
    await refresh();
    for (const bucket of await list(device, 'bucket=10h')) expect(bucket.avg).toBe(1.7e308);
  });

  test('can be ten thousand, as JSON and as CSV', async () => {
    const device = await app.newDevice(history.db);
    await history.db.query(
      `with made as (
         insert into series (device_id, s_id) values ($1, '0x1'), ($1, '0x2') returning id
       )
       insert into measurement (series_id, ts, val)
       select id, ms_to_timestamp($2) + i * interval '1 s', i from made, generate_series(0, 11999) i`,
      [device.deviceId, t0],
    );
    const buckets = await list(device, 'bucket=1s');
    expect(buckets).toHaveLength(24_000);
    expect(new Set(buckets.map(({ sId, ts }) => `${sId} ${ts}`)).size).toBe(24_000);
    expect(buckets[0]).toEqual({ sId: '0x1', ts: t0 + 11_999_000, min: 11_999, max: 11_999, avg: 11_999, count: 1, last: 11_999 }); // prettier-ignore
    const path = `/v2/measurements/${device.uuid}?bucket=1s`;
    const response = await history.get(path, device.accountId, { accept: 'text/csv' });
    expect(response.headers.get('content-type')).toMatch(/^text\/csv/);
    const lines = (await response.text()).split('\r\n');
    expect(lines).toHaveLength(24_002);
    expect(lines.slice(0, 2)).toEqual([
      'sId,ts,min,max,avg,count,last',
      `0x1,${t0 + 11_999_000},11999,11999,11999,1,11999`,
    ]);
  });

  test('of an empty range are none', async () => {
    const device = await app.newDevice(history.db);
    expect(await list(device, 'bucket=1s')).toEqual([]);
    expect(await list(device, 'bucket=1s&senses=0x9&start=4&end=5')).toEqual([]);
  });
});
