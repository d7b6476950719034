import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { maxValues } from '../../src/engine/last-seen.ts';
import { findNewest } from '../../src/measurements/store.ts';
import * as app from '../events/app.ts';
import { databaseKinds } from '../support/database.ts';
import { pointsIn } from './harness.ts';

const t0 = Date.UTC(2026, 5, 1);
const dayMs = 86_400_000;

describe.each(databaseKinds)('the newest measurements on %s', (kind) => {
  let history: app.OwnHistory;
  const { store } = pointsIn(() => history);
  beforeAll(async () => {
    history = await app.openHistory(kind);
  });
  afterAll(() => history?.close());

  const newestOf = async (device: app.Device, ...senses: string[]) => {
    const wanted = senses.map((sId) => ({ deviceId: device.deviceId, sId }));
    return (await findNewest(history.db, wanted)).get(device.deviceId);
  };

  test('are those of each requested sense that has measured, whatever arrived last', async () => {
    const [device, other] = [await app.newDevice(history.db), await app.newDevice(history.db)];
    await store(
      device,
      { sId: '0x1', ts: t0 + 5, val: 1.1 },
      { sId: '__proto__', ts: t0, val: -0 },
    );
    await store(device, { sId: '0x1', ts: t0 + 4, val: 2 }, { sId: '0x3', ts: t0 + 9, val: 3 });
    await store(other, { sId: '0x1', ts: t0 + 9, val: 9 });
    const found = await newestOf(device, '0x1', '0x2', '__proto__');
    expect(Object.entries(found ?? {})).toEqual(
      expect.arrayContaining([
        ['0x1', { ts: t0 + 5, vals: [1.1] }],
        ['__proto__', { ts: t0, vals: [0] }],
      ]),
    );
    expect(Object.keys(found ?? {})).toHaveLength(2);
    expect(await newestOf(device)).toBeUndefined();
    expect(await newestOf(device, '0x2')).toBeUndefined();
  });

  test('of one millisecond are all of its values, in the order of arrival', async () => {
    const device = await app.newDevice(history.db);
    const at = { sId: '0x1', ts: t0 + 7 };
    await store(device, { ...at, val: 3 }, { sId: '0x1', ts: t0 + 6, val: 8 });
    await store(device, { ...at, val: 52.5, long: -13.25 }, { ...at, val: 1 });
    expect(await newestOf(device, '0x1')).toEqual({
      '0x1': { ts: t0 + 7, vals: [3, { lat: 52.5, long: -13.25 }, 1] },
    });
    const many = Array.from({ length: 40 }, (_, n) => n + 100);
    await store(device, ...many.map((val) => ({ ...at, val })));
    const vals = [3, { lat: 52.5, long: -13.25 }, 1, ...many].slice(0, maxValues);
    expect(await newestOf(device, '0x1')).toEqual({ '0x1': { ts: t0 + 7, vals, last: 139 } });
  });

  test('up to a time are those that are not later', async () => {
    const device = await app.newDevice(history.db);
    const at = (val: number, ms: number) => ({ sId: '0x1', ts: t0 + ms, val });
    await store(device, at(1, 5), at(2, 7), at(3, 7), at(4, 8));
    const untilOf = (ms: number) =>
      findNewest(history.db, [{ deviceId: device.deviceId, sId: '0x1' }], t0 + ms).then((found) =>
        found.get(device.deviceId),
      );
    expect(await untilOf(8)).toEqual({ '0x1': { ts: t0 + 8, vals: [4] } });
    expect(await untilOf(7)).toEqual({ '0x1': { ts: t0 + 7, vals: [2, 3] } });
    expect(await untilOf(6)).toEqual({ '0x1': { ts: t0 + 5, vals: [1] } });
    expect(await untilOf(4)).toBeUndefined();
  });

  test('are found however old they are, also in compressed history', async () => {
    const devices = [await app.newDevice(history.db), await app.newDevice(history.db)];
    for (const [n, device] of devices.entries()) {
      for (let day = 0; day < 20; day += 1 + n) {
        const at = { sId: '0x1', ts: t0 - day * dayMs - n * 10 * dayMs };
        await store(device, { ...at, val: day }, { ...at, val: -day - 1 });
      }
    }
    if (kind === 'timescaledb') {
      await history.db.query(`select compress_chunk(c) from show_chunks('measurement') c`);
    }
    for (const [n, device] of devices.entries()) {
      const ts = t0 - n * 10 * dayMs;
      expect(await newestOf(device, '0x1')).toEqual({ '0x1': { ts, vals: [0, -1] } });
    }
  });
});
