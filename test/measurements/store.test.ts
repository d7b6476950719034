import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  addMeasurements,
  createKnownSeries,
  storeMeasurements,
} from '../../src/measurements/store.ts';
import * as app from '../events/app.ts';
import { databaseKinds } from '../support/database.ts';
import { pointsIn } from './harness.ts';

const t0 = Date.UTC(2026, 5, 1);

describe.each(databaseKinds)('storing measurements on %s', (kind) => {
  let history: app.OwnHistory;
  const { known, store, list, walk } = pointsIn(() => history);
  beforeAll(async () => {
    history = await app.openHistory(kind);
  });
  afterAll(() => history?.close());

  test('that are delivered again are stored once; another value in the same millisecond is stored too', async () => {
    const device = await app.newDevice(history.db);
    const row = { sId: '0x1', ts: t0, val: 1 };
    const rows = [row, row, { ...row, val: 2 }, { ...row, val: 1, long: 1 }];
    for (let i = 0; i < 3; i += 1) expect(await store(device, ...rows)).toEqual([]);
    await store(device, { ...row, val: 3 }, { ...row, val: 2 });
    expect((await list(device)).map(({ val }) => val)).toEqual([3, { lat: 1, long: 1 }, 2, 1]);
  });

  test('of one millisecond are at most 1,000; further ones find no place', async () => {
    const device = await app.newDevice(history.db);
    const at = (ts: number, count: number) =>
      Array.from({ length: count }, (_, val) => ({ sId: '0x1', ts, val }));
    expect(await store(device, ...at(t0, 600))).toEqual([]);
    // The next millisecond has its own places, and so has the one before.
    expect(await store(device, ...at(t0 + 1, 1), ...at(t0 - 1, 1))).toEqual([]);
    expect(await store(device, ...at(t0, 1_002))).toEqual([1_000, 1_001]);
    expect(await store(device, ...at(t0, 1_001), ...at(t0 + 1, 2))).toEqual([1_000]);
    const found = await walk(device, `start=${t0}&end=${t0}&limit=300`);
    expect(found.map(({ val }) => val)).toEqual(at(t0, 1_000).map(({ val }) => 999 - val));
    expect(await list(device, `start=${t0 + 1}`)).toEqual(at(t0 + 1, 2).toReversed());
  });

  test('that share a millisecond read it once, not once each', async () => {
    const device = await app.newDevice(history.db);
    const at = (from: number) =>
      Array.from({ length: 500 }, (_, n) => ({ sId: '0x1', ts: t0, val: from + n }));
    await store(device, ...at(0));
    await store(device, ...at(500));
    const read = await history.db.transaction(async (tx) => {
      const rows = at(1_000).map((row) => ({ ...row, deviceId: device.deviceId }));
      expect(await storeMeasurements(tx, rows, known)).toHaveLength(500);
      const { rows: counts } = await tx.query<{ read: number }>(
        `select sum(coalesce(idx_tup_fetch, 0) + coalesce(seq_tup_read, 0))::integer as read
           from pg_stat_xact_user_tables
          where relname = 'measurement' or relname like '%hyper%'`,
      );
      return counts[0]?.read;
    });
    // Each of 500 points against all 1,000 would be 500,000.
    expect(read).toBeGreaterThanOrEqual(1_000);
    expect(read).toBeLessThan(50_000);
  });

  test('of two transactions in the same milliseconds are all stored once', async () => {
    const device = await app.newDevice(history.db);
    const rows = (vals: number[]) =>
      [t0, t0 + 86_400_000].flatMap((ts) => vals.map((val) => ({ sId: '0x1', ts, val })));
    await store(device, { sId: '0x1', ts: t0 - 1, val: 0 });
    await Promise.all(
      [[1, 2, 3], [3, 4], [5], [2, 6], [6, 1, 4], [1, 3, 5]].map((vals) =>
        store(device, ...rows(vals)),
      ),
    );
    const found = await list(device, `start=${t0}`);
    const vals = found.map(({ ts, val }) => [ts, val]).sort();
    expect(vals).toEqual(
      rows([1, 2, 3, 4, 5, 6])
        .map(({ ts, val }) => [ts, val])
        .sort(),
    );
  });

  test('that are new are added; a stored one is a unique violation', async () => {
    const device = await app.newDevice(history.db);
    const add = (...values: { ts: number; val: number; long?: number }[]) =>
      history.db.transaction((tx) =>
        addMeasurements(
          tx,
          values.map((value) => ({ deviceId: device.deviceId, sId: '0xAb', ...value })),
          known,
        ),
      );
    const vals = [1.1, -0.1, 5e-324, 1.7976931348623157e308, 1e21, 123456789.12345679, 0];
    await add(...vals.map((val, i) => ({ ts: t0 + i, val })));
    for (const val of [-0, 1]) {
      await expect(add({ ts: t0 + 50, val: 1 }, { ts: t0 + 6, val })).rejects.toMatchObject({
        code: '23505',
      });
    }
    await add({ ts: t0 + 100, val: 52.5, long: -13.25 }, { ts: t0 + 7, val: -0 });
    const points = [...vals, 0].map((val, i) => ({ sId: '0xAb', ts: t0 + i, val }));
    points.push({ sId: '0xAb', ts: t0 + 100, val: { lat: 52.5, long: -13.25 } as never });
    expect(await list(device)).toEqual(points.toReversed());
  });

  test('of a sense are found although its first transaction was rolled back', async () => {
    const device = await app.newDevice(history.db);
    const rows = [{ deviceId: device.deviceId, sId: '0x1', ts: t0, val: 1 }];
    const failed = history.db.transaction(async (tx) => {
      await storeMeasurements(tx, rows, known);
      throw new Error('rolled back');
    });
    await expect(failed).rejects.toThrow('rolled back');
    await history.db.transaction((tx) => storeMeasurements(tx, rows, known));
    expect(await list(device)).toHaveLength(1);
  });

  test('of a sense that two transactions add at once are all stored', async () => {
    const device = await app.newDevice(history.db);
    const stored = [1, 2, 3, 4].map((val) =>
      history.db.transaction((tx) =>
        addMeasurements(
          tx,
          [{ deviceId: device.deviceId, sId: '0x1', ts: t0 + val, val }],
          createKnownSeries(),
        ),
      ),
    );
    await Promise.all(stored);
    expect((await list(device)).map(({ val }) => val)).toEqual([4, 3, 2, 1]);
  });

  test('are distinguished by device and sense, even if there are more than can be remembered', async () => {
    const devices = [await app.newDevice(history.db), await app.newDevice(history.db)];
    const few = createKnownSeries(3);
    const rows = devices.flatMap(({ deviceId }, d) =>
      ['0x1', '0x2', '0x3'].map((sId, s) => ({ deviceId, sId, ts: t0, val: 10 * d + s })),
    );
    for (const i of [0, 1, 2]) {
      const later = rows.map((row) => ({ ...row, ts: t0 + i }));
      await history.db.transaction((tx) => addMeasurements(tx, later, few));
    }
    for (const [d, device] of devices.entries()) {
      const vals = ['0x3', '0x2', '0x1'].map((sId, s) => ({ sId, val: 10 * d + 2 - s }));
      const expected = [2, 1, 0].flatMap((i) => vals.map((each) => ({ ...each, ts: t0 + i })));
      expect(await list(device)).toEqual(expected);
    }
  });
});
