import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createKnownSenses } from '../../src/measurements/known-senses.ts';
import {
  addMeasurements,
  storeMeasurements,
  type StoredMeasurement,
} from '../../src/measurements/store.ts';
import * as app from '../events/app.ts';
import { databaseKinds } from '../harness/database.ts';

const t0 = Date.UTC(2026, 5, 1);
type Point = { sId: string; ts: number; val: number | { lat: number; long: number } };

describe.each(databaseKinds)('measurements on %s', (kind) => {
  let history: app.OwnHistory;
  beforeAll(async () => {
    history = await app.openHistory(kind);
  });
  afterAll(() => history?.close());

  const store = (device: app.Device, ...rows: Omit<StoredMeasurement, 'deviceId'>[]) =>
    history.db.transaction((tx) =>
      storeMeasurements(
        tx,
        rows.map((row) => ({ ...row, deviceId: device.deviceId })),
      ),
    );
  const pathOf = (device: app.Device, query = '') => `/v2/measurements/${device.uuid}?${query}`;
  async function list(device: app.Device, query = ''): Promise<Point[]> {
    const body = await history.json(pathOf(device, query), device.accountId);
    expect(body['timestamp']).toEqual(expect.any(Number));
    return body['measurements'] as Point[];
  }
  async function walk(device: app.Device, query: string): Promise<Point[]> {
    const all: Point[] = [];
    let at: string | null = pathOf(device, query);
    while (at !== null) {
      const response: Response = await history.get(at, device.accountId);
      expect(response.status).toBe(200);
      all.push(...((await response.json()) as { measurements: Point[] }).measurements);
      at = app.nextOf(response);
    }
    return all;
  }

  test('come newest first, numbers and positions, exactly as they were sent', async () => {
    const device = await app.newDevice(history.db);
    const vals = [1.1, -0.1, 5e-324, 1.7976931348623157e308, 1e21, 123456789.12345679, 0];
    await store(device, ...vals.map((val, i) => ({ sId: '0x1', ts: t0 + i, val })));
    await store(device, { sId: '0xAB', ts: t0 + 100, val: 52.5, long: -13.25 });
    const points = await list(device);
    expect(points[0]).toEqual({ sId: '0xAB', ts: t0 + 100, val: { lat: 52.5, long: -13.25 } });
    expect(points.slice(1)).toEqual(
      vals.map((val, i) => ({ sId: '0x1', ts: t0 + i, val })).reverse(),
    );
  });

  test('that come again are stored once; another value in the same millisecond is another', async () => {
    const device = await app.newDevice(history.db);
    const known = createKnownSenses();
    const row = { deviceId: device.deviceId, sId: '0x1', ts: t0, val: 1 };
    const rows = [row, row, { ...row, val: 2 }, { ...row, val: 1, long: 1 }];
    for (let i = 0; i < 3; i += 1) {
      await history.db.transaction((tx) => storeMeasurements(tx, rows, known));
    }
    expect(await list(device)).toHaveLength(3);
  });

  test('that are new are added; one that is there already is a unique violation', async () => {
    const device = await app.newDevice(history.db);
    const add = (...values: { ts: number; val: number; long?: number }[]) =>
      history.db.transaction((tx) =>
        addMeasurements(
          tx,
          values.map((value) => ({ deviceId: device.deviceId, sId: '0xAb', ...value })),
          createKnownSenses(),
        ),
      );
    const vals = [1.1, -0.1, 5e-324, 1.7976931348623157e308, 1e21, 123456789.12345679, 0];
    await add(...vals.map((val, i) => ({ ts: t0 + i, val })));
    await expect(add({ ts: t0 + 50, val: 1 }, { ts: t0 + 6, val: -0 })).rejects.toMatchObject({
      code: '23505',
    });
    await add({ ts: t0 + 100, val: 52.5, long: -13.25 }, { ts: t0 + 7, val: -0 });
    const points = [...vals, 0].map((val, i) => ({ sId: '0xAb', ts: t0 + i, val }));
    points.push({ sId: '0xAb', ts: t0 + 100, val: { lat: 52.5, long: -13.25 } as never });
    expect(await list(device)).toEqual(points.toReversed());
  });

  test('of a sense are found although its first transaction was rolled back', async () => {
    const device = await app.newDevice(history.db);
    const known = createKnownSenses();
    const rows = [{ deviceId: device.deviceId, sId: '0x1', ts: t0, val: 1 }];
    const failed = history.db.transaction(async (tx) => {
      await storeMeasurements(tx, rows, known);
      throw new Error('rolled back');
    });
    await expect(failed).rejects.toThrow('rolled back');
    await history.db.transaction((tx) => storeMeasurements(tx, rows, known));
    expect(await list(device)).toHaveLength(1);
  });

  test('are paged in one order without a gap or a repetition, also within a millisecond', async () => {
    const value = fc.oneof(
      fc.integer({ min: -2, max: 2 }).map((val) => ({ val })),
      fc.record({ val: fc.constant(1), long: fc.integer({ min: -1, max: 1 }) }),
    );
    const row = fc
      .tuple(fc.constantFrom('0x1', '0xA', '0xa', '0x10'), fc.nat(3), value)
      .map(([sId, n, place]) => ({ sId, ts: t0 + n, ...place }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { maxLength: 40 }),
        fc.integer({ min: 1, max: 7 }),
        fc.option(fc.subarray(['0x1', '0xA', '0xa', '0x10'], { minLength: 1 })),
        fc.option(fc.nat(4)),
        fc.option(fc.nat(4)),
        async (rows, limit, senses, start, end) => {
          const device = await app.newDevice(history.db);
          await store(device, ...rows);
          const query = new URLSearchParams({ limit: String(limit) });
          if (senses) query.set('senses', senses.join(','));
          if (start !== null) query.set('start', String(t0 + start));
          if (end !== null) query.set('end', String(t0 + end));
          const found = await walk(device, query.toString());
          const expected = new Set(
            rows
              .filter(({ sId }) => !senses || senses.includes(sId))
              .filter(({ ts }) => ts >= t0 + (start ?? 0) && ts <= t0 + (end ?? 9))
              .map((r) => JSON.stringify([r.sId, r.ts, 'long' in r ? [r.val, r.long] : r.val])),
          );
          const names = found.map(({ sId, ts, val }) =>
            JSON.stringify([sId, ts, typeof val === 'number' ? val : [val.lat, val.long]]),
          );
          expect(new Set(names)).toEqual(expected);
          expect(names).toHaveLength(expected.size);
          expect(found.map(({ ts }) => ts)).toEqual(
            found.map(({ ts }) => ts).sort((a, b) => b - a),
          );
        },
      ),
      { numRuns: 30 },
    );
  });

  test('are given as CSV, page by page', async () => {
    const device = await app.newDevice(history.db);
    await store(
      device,
      { sId: '0x1', ts: t0, val: 1.5 },
      { sId: '0x2', ts: t0 + 1, val: 1, long: 2 },
    );
    await store(device, { sId: '0x1', ts: t0 - 1, val: 7 });
    const response = await history.get(pathOf(device, 'limit=2'), device.accountId, {
      accept: 'text/csv',
    });
    expect(response.headers.get('content-type')).toMatch(/^text\/csv/);
    expect(await response.text()).toBe(
      `sId,ts,val,lat,long\r\n0x2,${t0 + 1},,1,2\r\n0x1,${t0},1.5,,\r\n`,
    );
    expect(app.nextOf(response)).toContain('cursor=');
  });

  test('hold 1,000 a page', async () => {
    const device = await app.newDevice(history.db);
    await store(
      device,
      ...Array.from({ length: 1_001 }, (_, i) => ({ sId: '0x1', ts: t0 + i, val: i })),
    );
    expect(await list(device, 'limit=5000')).toHaveLength(1_000);
    expect(await walk(device, '')).toHaveLength(1_001);
  });

  test("of somebody else's device are unknown", async () => {
    const mine = await app.newDevice(history.db);
    const other = await app.newDevice(history.db);
    expect((await history.get(pathOf(other), mine.accountId)).status).toBe(404);
  });

  test.each([
    'limit=0',
    'start=x',
    'bucket=0s',
    'bucket=5',
    'bucket=1w',
    'bucket=1.5h',
    'bucket=9999999999d',
    'cursor=W10',
  ])('are not given for %s', async (query) => {
    const device = await app.newDevice(history.db);
    expect((await history.get(pathOf(device, query), device.accountId)).status).toBe(400);
  });
});
