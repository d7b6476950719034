import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import {
  countingPurpose,
  forever,
  ingestProcess,
  insertDevice,
  installProfile,
} from './harness.ts';
import { now, storedValues, uplink, type IngestProcess } from './harness.ts';
import { listFired, listRemarks, send as sendPoints, type Point } from './points.ts';

let database: TestDatabase;
let process: IngestProcess;
let another: IngestProcess;
let device: DeviceIdentity;
beforeAll(async () => {
  database = await testDatabase();
  process = ingestProcess(database.url);
  another = ingestProcess(database.url);
});
afterAll(async () => {
  await Promise.all([process.close(), another.close()]);
  await database.drop();
});

const minuteMs = 60_000;

const send = (by: IngestProcess, ...points: Point[]) => sendPoints(by, device, points);
const fired = () => listFired(database.db, device);

async function start(count = 1): Promise<void> {
  device = await insertDevice(database.db);
  await installProfile(database.db, device, [countingPurpose(count)]);
}

describe('a value more than 10 s ahead of its arrival', () => {
  test('is stored as it is, evaluated as of its arrival, and makes nobody silent', async () => {
    await start();
    await send(process, [0, 1], [4 * minuteMs, 30, 1_000], [2_000, 31, 2_000]);
    expect(await fired()).toEqual([
      [1_000, 30],
      [2_000, 31],
    ]);
    expect(await storedValues(database.db, device)).toEqual([1, 31, 30]);
  });

  test('10 s are not ahead', async () => {
    await start();
    await send(process, [10_000, 30], [9_999, 31], [20_001, 32, 10_000], [19_999, 33, 10_000]);
    expect(await fired()).toEqual([
      [10_000, 30],
      [10_000, 32],
      [19_999, 33],
    ]);
  });

  test.each(['the same process', 'another one'])(
    'leaves the clock where it was, to %s',
    async (who) => {
      const next = who === 'another one' ? another : process;
      await start();
      await send(process, [5_000, 1, 5_000], [4 * minuteMs, 1, 6_000]);
      // Older than the newest that was not ahead.
      await send(next, [4_000, 30, 7_000]);
      expect(await fired()).toEqual([]);
      await send(next, [8_000, 31, 8_000]);
      await send(process, [7_999, 32, 9_000], [9_000, 33, 9_000]);
      expect(await fired()).toEqual([
        [8_000, 31],
        [9_000, 33],
      ]);
    },
  );

  test('is evaluated if there is no other, and so is what follows', async () => {
    await start();
    await send(process, [4 * minuteMs, 30]);
    await send(another, [1_000, 31, 1_000]);
    expect(await fired()).toEqual([
      [0, 30],
      [1_000, 31],
    ]);
  });

  test('is not evaluated again when it is redelivered, to any process at any time', async () => {
    await start();
    await send(process, [0, 1], [minuteMs, 30, 1_000], [minuteMs, 30, 2_000]);
    await send(another, [minuteMs, 30, 3_000]);
    // It is not ahead any more.
    await send(process, [minuteMs, 30, 59_000], [minuteMs, 30, 2 * minuteMs]);
    await send(another, [minuteMs, 31, 2 * minuteMs], [minuteMs, 30, 2 * minuteMs]);
    await send(process, [minuteMs, 31, 2 * minuteMs]);
    expect(await fired()).toEqual([
      [1_000, 30],
      [minuteMs, 31],
    ]);
  });

  test('nor within one message', async () => {
    await start();
    const value = { sId: '0x01', val: 30, ts: now + minuteMs };
    const items = [0, 1].map((index) => ({ index, value }));
    await process.ingest.ingest(device, uplink({ kind: 'measurements', items }), forever);
    expect(await fired()).toEqual([[0, 30]]);
  });

  test.each(['the same process', 'another one'])(
    'is not the clock of a sense that no profile read, to %s',
    async (who) => {
      device = await insertDevice(database.db);
      await send(process, [0, 1], [4 * minuteMs, 30, 1_000]);
      await installProfile(database.db, device, [countingPurpose(1)]);
      const next = who === 'another one' ? another : process;
      // Older than the newest that was not ahead.
      await send(next, [-1, 31, 1_500], [2_000, 32, 2_000]);
      await send(process, [1_999, 33, 3_000], [3_000, 34, 3_000]);
      // Its time has come, but what was evaluated since is the clock.
      await send(another, [3 * minuteMs, 35, 5 * minuteMs]);
      expect(await fired()).toEqual([
        [2_000, 32],
        [3_000, 34],
        [3 * minuteMs, 35],
      ]);
    },
  );

  test('nor is it if another profile was current then, and nothing else is stored', async () => {
    device = await insertDevice(database.db);
    const causes = [{ sId: '0x02', thresholds: { isGt: 20 } }];
    const states = [{ stId: 1, events: [{ evId: 3, eventLog: true, causes }] }];
    await installProfile(database.db, device, [Purpose.parse({ puId: 6, initStId: 1, states })]);
    await send(process, [4 * minuteMs, 30]);
    const pId = await installProfile(database.db, device, [countingPurpose(1)]);
    const answer = { pId, state: 'current' as const };
    await process.ingest.ingest(device, uplink({ kind: 'profile-answer', answer }, now), forever);
    await send(process, [1_000, 31, 1_000]);
    expect(await fired()).toEqual([[1_000, 31]]);
  });

  test('leaves the sixteen values in the clock’s millisecond as they are, for another process too', async () => {
    await start();
    const sixteen = Array.from({ length: 16 }, (_, n): Point => [5_000, 30 + n, 5_000]);
    await send(process, ...sixteen, [4 * minuteMs, 1, 6_000]);
    await send(another, [5_000, 60, 7_000], [5_001, 61, 7_000]);
    const found = await fired();
    expect(found).toHaveLength(17);
    expect(found.at(-1)).toEqual([5_001, 61]);
  });

  test('is reported to the device once an hour, even if other processes take it over', async () => {
    await start();
    const [own, others] = [process.down.length, another.down.length];
    await send(process, [minuteMs, 1], [minuteMs + 1, 1, 1]);
    await send(another, [minuteMs + 2, 1, 2], [minuteMs + 3_600_000, 1, 3_600_000]);
    await send(process, [minuteMs + 3_600_001, 1, 3_600_001]);
    expect(listRemarks(process, own)).toEqual(['clock-ahead']);
    expect(listRemarks(another, others)).toEqual(['clock-ahead']);
  });

  test('is reported even without a profile', async () => {
    device = await insertDevice(database.db);
    const own = process.down.length;
    await send(process, [minuteMs, 1], [minuteMs + 1, 1, 1]);
    expect(listRemarks(process, own)).toEqual(['clock-ahead']);
  });
});

describe('a value without a time', () => {
  test('gets the time of its arrival, plus a millisecond if its sense has that already', async () => {
    await start();
    await send(process, [null, 30], [null, 31], [null, 32, 1]);
    expect(await fired()).toEqual([
      [0, 30],
      [1, 31],
      [2, 32],
    ]);
  });

  test('is evaluated below the clock, and does not set it back', async () => {
    await start();
    await send(process, [9_000, 1], [null, 30, 1_000], [8_000, 31, 9_500], [10_000, 32, 10_000]);
    expect(await fired()).toEqual([
      [1_000, 30],
      [10_000, 32],
    ]);
  });
});

describe('values of one message', () => {
  test('are evaluated by their times, equal ones as they were sent; rejections keep their places', async () => {
    await start(2);
    const points: [number | null, number][] = [
      [3, 30],
      [1, 1],
      [null, 25],
      [3, 1],
      [2, -51],
    ];
    const items = points.map(([at, val], index) => ({
      index,
      value: { sId: '0x01', val, ...(at !== null && { ts: now - 10 + at }) },
    }));
    await process.ingest.ingest(device, uplink({ kind: 'measurements', items }), forever);
    // 1, 30, 1, 25: never two in a row.
    expect(await fired()).toEqual([]);
    await send(process, [1, 26, 1]);
    expect(await fired()).toEqual([[1, 26]]);
    const { rows } = await database.db.query('select path from rejection where device_id = $1', [
      device.deviceId,
    ]);
    expect(rows).toEqual([{ path: '/4/val' }]);
  });

  test('are, however they are divided', async () => {
    const small = ingestProcess(database.url, { maxBatchItems: 3 });
    await start(3);
    const items = Array.from({ length: 40 }, (_, n) => ({
      index: n,
      // Newest first; every tenth is low.
      value: { sId: '0x01', val: n % 10 === 9 ? 1 : 30, ts: now - n },
    }));
    await small.ingest.ingest(device, uplink({ kind: 'measurements', items }), forever);
    await small.close();
    const whole = device;
    const divided = await fired();
    await start(3);
    await process.ingest.ingest(device, uplink({ kind: 'measurements', items }), forever);
    expect(device).not.toBe(whole);
    expect(await fired()).toEqual(divided);
    expect(divided).toHaveLength(12);
  });
});
