import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { countingPurpose, ingestProcess, insertDevice, installProfile } from './harness.ts';
import type { IngestProcess } from './harness.ts';
import { listFired, listRemarks, send as sendPoints, type Point } from './points.ts';

const minuteMs = 60_000;
const weekMs = 7 * 24 * 60 * minuteMs;

let database: TestDatabase;
let process: IngestProcess;
let another: IngestProcess;
let device: DeviceIdentity;
beforeAll(async () => {
  database = await testDatabase();
  process = ingestProcess(database.url);
  another = ingestProcess(database.url);
});
beforeEach(async () => {
  device = await insertDevice(database.db);
  await installProfile(database.db, device, [countingPurpose(1)]);
  await send(process, [0, 1]);
});
afterAll(async () => {
  await Promise.all([process.close(), another.close()]);
  await database.drop();
});

const send = (by: IngestProcess, ...points: Point[]) => sendPoints(by, device, points);
const fired = () => listFired(database.db, device);

/** High values of a clock that is three weeks slow. `pace`: how fast it advances. */
const late = (arrivedMinutes: number[], pace = 1): Point[] =>
  arrivedMinutes.map((minute) => [
    minute * minuteMs * pace - 3 * weekMs,
    30 + minute,
    minute * minuteMs,
  ]);

describe('the clock of a sense that was set back three weeks', () => {
  test('counts once its values were too late for a quarter of an hour', async () => {
    const since = process.down.length;
    await send(process, ...late([1, 6, 11, 16, 17]));
    expect(await fired()).toEqual([
      [16 * minuteMs - 3 * weekMs, 46],
      [17 * minuteMs - 3 * weekMs, 47],
    ]);
    expect(listRemarks(process, since)).toEqual(['clock-back']);
  });

  test('counts from there on: older values are too late again', async () => {
    await send(process, ...late([1, 6, 16]), ...late([15, 17]));
    expect(await fired()).toEqual([
      [16 * minuteMs - 3 * weekMs, 46],
      [17 * minuteMs - 3 * weekMs, 47],
    ]);
  });

  test('whichever process evaluates it, in whatever order', async () => {
    const turns = [process, another, process, another, another, process];
    for (const [n, point] of late([1, 6, 11, 16, 17, 18]).entries())
      await send(turns[n] as IngestProcess, point);
    expect((await fired()).map(([, val]) => val)).toEqual([46, 47, 48]);
  });

  test('no longer applies once its values are newer than everything stored', async () => {
    await send(process, ...late([1, 6, 16]), [20 * minuteMs, 1, 20 * minuteMs], ...late([21]));
    await send(another, ...late([22]), [21 * minuteMs, 99, 21 * minuteMs]);
    expect((await fired()).map(([, val]) => val)).toEqual([46, 99]);
  });

  test('counts within 35 minutes even if a backlog came with it', async () => {
    const backlog = Array.from({ length: 50 }, (_, n): Point => [-4 * weekMs + n, 1, minuteMs]);
    await send(process, ...backlog, ...late([2, 7, 12, 17, 22, 27, 32]));
    const [[, first] = []] = await fired();
    expect(first).toBeLessThanOrEqual(30 + 35);
  });
});

describe('it does not count if', () => {
  test.each<[string, Point[]]>([
    ['there are only two values', late([1, 17])],
    ['a quarter of an hour is not over', late([1, 6, 11, 15])],
    ['they advance more than twice as fast as time', late([1, 6, 11, 16, 21], 2.1)],
    ['they advance less than half as fast as time', late([1, 6, 11, 16, 21], 0.45)],
    ['they do not advance', [...late([1, 6]), ...late([5, 11, 16])]],
    [
      'one of them was not too late',
      [...late([1, 6, 11]), [minuteMs, 1, 12 * minuteMs], ...late([17])],
    ],
    ['one came without a time', [...late([1, 6, 11]), [null, 1, 12 * minuteMs], ...late([17])]],
    ['one was ahead', [...late([1, 6, 11]), [14 * minuteMs, 1, 12 * minuteMs], ...late([17])]],
  ])('%s', async (_why, points) => {
    await send(process, ...points);
    expect(await fired()).toEqual([]);
  });

  test('they are stored already: a backlog that is sent again is no sign of a clock', async () => {
    const points = late([1, 6, 11, 16, 21, 26]);
    const first = points.map(([ts, val]): Point => [ts, val, 0]);
    await send(process, ...first, ...points);
    await send(another, ...points);
    expect(await fired()).toEqual([]);
  });
});

test('values that advance twice or half as fast as time still count as a clock', async () => {
  await send(process, ...late([1, 6, 16], 2));
  expect(await fired()).toHaveLength(1);
  device = await insertDevice(database.db);
  await installProfile(database.db, device, [countingPurpose(1)]);
  await send(process, [0, 1], ...late([1, 6, 16], 0.5));
  expect(await fired()).toHaveLength(1);
});

test('each sense has its own clock', async () => {
  await sendPoints(process, device, [[0, 1]], '0x02');
  await send(process, ...late([1, 6]));
  await sendPoints(process, device, late([11]), '0x02');
  await send(process, ...late([17]));
  expect((await fired()).map(([, val]) => val)).toEqual([47]);
});
