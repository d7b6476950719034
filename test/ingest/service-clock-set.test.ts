import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { DeviceIdentity, UplinkContent } from '../../src/contract/uplink.ts';
import { assignTimestamps, type DeviceQueue, DeviceQueues } from '../../src/ingest/queue.ts';
import { checkTime } from '../../src/ingest/rules/measurements.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import {
  countingPurpose,
  forever,
  ingestProcess,
  insertDevice,
  installProfile,
  now,
  rejections,
  storedValues,
  uplink,
  type IngestProcess,
} from './harness.ts';
import { listFired, send, type Point } from './points.ts';
import { device as someDevice } from './fragments.ts';

const hourMs = 3_600_000;
const yearMs = 365 * 24 * hourMs;

describe.each(databaseKinds)('values without a time, on %s', (kind) => {
  let database: TestDatabase;
  let process: IngestProcess;
  let device: DeviceIdentity;
  beforeAll(async () => {
    database = await testDatabase(kind);
    process = ingestProcess(database.url);
  });
  beforeEach(async () => {
    device = await insertDevice(database.db);
    await installProfile(database.db, device, [countingPurpose(1)]);
  });
  afterAll(async () => {
    await process.close();
    await database.drop();
  });
  const values = (...points: Point[]) => send(process, device, points);

  test.each([
    { what: 'set back by an hour', byMs: -hourMs },
    { what: 'a year ahead', byMs: yearMs },
  ])(
    'of a service whose clock is $what, then correct again, are stored and evaluated',
    async ({ byMs }) => {
      await values([null, 31, 0]);
      await values([null, 32, byMs + 1_000]);
      await values([null, 33, 2_000]);
      const stored = await storedValues(database.db, device);
      expect(stored.toSorted()).toEqual([31, 32, 33]);
      expect(await rejections(database.db, device)).toEqual([]);
      const fired = await listFired(database.db, device);
      expect(fired.map(([, val]) => val).toSorted()).toEqual([31, 32, 33]);
    },
  );

  test.each([-hourMs, yearMs])('and so are reported states (%d ms)', async (byMs) => {
    await values([null, 1, 0]);
    const report = (arrived: number) => {
      const content: UplinkContent = { kind: 'state', report: { puId: 7, stId: 1 } };
      return process.ingest.ingest(device, uplink(content, now + arrived), forever);
    };
    const told: number[] = [];
    for (const arrived of [0, byMs + 1, 2]) {
      await report(arrived);
      const { rows } = await database.db.query<{ ts: number }>(
        `select reported_at as ts from device_state where device_id = $1`,
        [device.deviceId],
      );
      told.push((rows[0]?.ts ?? 0) - now);
    }
    expect(told).toEqual([0, byMs + 1, 2]);
  });
});

describe('the time given to a value without one', () => {
  const without = (count: number): UplinkContent => ({
    kind: 'measurements',
    items: Array.from({ length: count }, (_, index) => ({ index, value: { sId: '0x1', val: 1 } })),
  });
  const timesOf = (content: UplinkContent) =>
    content.kind === 'measurements' ? content.items.map(({ value }) => value.ts ?? NaN) : [];
  const give = (queue: DeviceQueue, count: number, arrivedTs: number) =>
    timesOf(assignTimestamps({ content: without(count), arrivedTs }, queue));

  test('is unique, however many come at once', () => {
    const queue = new DeviceQueues(1).queueOf(someDevice(1));
    const times = [...give(queue, 20_000, now), ...give(queue, 1, now + 1)];
    expect(new Set(times).size).toBe(20_001);
  });

  test('is that of its arrival if the last one came from a clock that was ahead', () => {
    const queue = new DeviceQueues(1).queueOf(someDevice(1));
    give(queue, 1, now + yearMs);
    expect(give(queue, 2, now)).toEqual([now, now + 1]);
  });

  test('starts anew when the clock was set, by however little', () => {
    const queues = new DeviceQueues(10);
    const queue = queues.queueOf(someDevice(1));
    give(queue, 1, now + 5_000);
    queues.forgetStamps();
    expect(give(queue, 1, now)).toEqual([now]);
  });
});

describe('a time while the clock is in doubt', () => {
  const minuteMs = 60_000;
  const reasonOf = (ts: number, arrivedTs: number, doubtSpanMs: number) => {
    const limits = { maxAheadMs: 5 * minuteMs, doubtSpanMs: () => doubtSpanMs };
    return checkTime(ts, { arrivedTs, limits }, 90 * 24 * hourMs, '')?.reason ?? null;
  };

  test.each([
    {
      name: 'correct, with the clock set back',
      ts: now,
      arrivedTs: now - hourMs,
      spanMs: hourMs,
      reason: null,
    },
    {
      name: 'by the clock that was set back',
      ts: now - hourMs,
      arrivedTs: now - hourMs,
      spanMs: hourMs,
      reason: null,
    },
    {
      name: 'ahead of both',
      ts: now + 6 * minuteMs,
      arrivedTs: now - hourMs,
      spanMs: hourMs,
      reason: 'future-timestamp',
    },
    {
      name: 'correct, with the clock a year ahead',
      ts: now,
      arrivedTs: now + yearMs,
      spanMs: -yearMs,
      reason: null,
    },
    {
      name: 'by the clock that is ahead',
      ts: now + yearMs,
      arrivedTs: now + yearMs,
      spanMs: -yearMs,
      reason: null,
    },
    {
      name: 'older than both allow',
      ts: now - 91 * 24 * hourMs,
      arrivedTs: now + yearMs,
      spanMs: -yearMs,
      reason: 'expired-timestamp',
    },
    {
      name: 'correct, with a trusted clock a year ahead',
      ts: now,
      arrivedTs: now + yearMs,
      spanMs: 0,
      reason: 'expired-timestamp',
    },
  ])('$name: $reason', ({ ts, arrivedTs, spanMs, reason }) => {
    expect(reasonOf(ts, arrivedTs, spanMs)).toBe(reason);
  });
});
