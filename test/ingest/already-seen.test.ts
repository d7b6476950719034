import { afterAll, beforeAll, expect, test } from 'vitest';
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
import { measured, now, recordedEvents, storedValues, uplink, waitForBlocked } from './harness.ts';
import type { IngestProcess } from './harness.ts';

let database: TestDatabase;
let process: IngestProcess;
let other: IngestProcess;
beforeAll(async () => {
  database = await testDatabase();
  process = ingestProcess(database.url);
  other = ingestProcess(database.url);
});
afterAll(async () => {
  await Promise.all([process.close(), other.close()]);
  await database.drop();
});

/** The times of recorded sense events. */
async function firedAt(device: DeviceIdentity): Promise<number[]> {
  const events = await recordedEvents(database.db, device);
  return events.filter(({ type }) => type === 'sense').map(({ ts }) => ts - now);
}

async function readRow(device: DeviceIdentity) {
  const { rows } = await database.db.query<{ version: number; xmin: string }>(
    'select version, xmin::text from device_state where device_id = $1',
    [device.deviceId],
  );
  return rows[0];
}

test('a device’s row is written when its evidence changes, not for each measurement', async () => {
  const device = await insertDevice(database.db);
  await installProfile(database.db, device, [countingPurpose(2)]);
  for (const n of [1, 2, 3])
    await process.ingest.ingest(device, measured('0x01', [now + n, n]), forever);
  const before = await readRow(device);
  await process.ingest.ingest(device, measured('0x01', [now + 4, 4], [now + 5, 5]), forever);
  await process.ingest.ingest(device, measured('0x02', [now + 6, 99]), forever);
  expect((await readRow(device))?.version).toBe(before?.version);
  await process.ingest.ingest(device, measured('0x01', [now + 7, 21]), forever);
  expect((await readRow(device))?.version).toBe((before?.version ?? 0) + 1);
  await process.ingest.ingest(device, measured('0x01', [now + 8, 22]), forever);
  expect(await firedAt(device)).toEqual([8]);
});

test('a device without a profile belongs to no process: nobody writes its row', async () => {
  const device = await insertDevice(database.db);
  const before = await readRow(device);
  for (const n of [1, 2, 3]) {
    await process.ingest.ingest(device, measured('0x01', [now + n, n]), forever);
    await other.ingest.ingest(device, measured('0x01', [now + n, -n]), forever);
  }
  expect(await readRow(device)).toEqual(before);
});

test.each<[string, [number, number], number[]]>([
  ['an older one is not', [9, 50], []],
  ['the same one again is not', [10, 1], []],
  ['another value of the same millisecond is', [10, 50], [10]],
  ['a newer one is', [11, 50], [11]],
])('to a process that took over a device, %s new', async (_which, point, fired) => {
  const device = await insertDevice(database.db);
  await installProfile(database.db, device, [countingPurpose(1)]);
  const at = ([n, val]: [number, number]) => measured('0x01', [now + n, val]);
  for (const n of [8, 10]) await process.ingest.ingest(device, at([n, 1]), forever);
  await other.ingest.ingest(device, at(point), forever);
  // The device is back, with what the other process has stored.
  await process.ingest.ingest(device, at(point), forever);
  expect(await firedAt(device)).toEqual(fired);
});

test('a process that gets a device back knows what another one stored meanwhile', async () => {
  const device = await insertDevice(database.db);
  await installProfile(database.db, device, [countingPurpose(1)]);
  // From the second value on the evidence stays as it is.
  for (const n of [8, 10]) {
    await process.ingest.ingest(device, measured('0x01', [now + n, 1]), forever);
  }
  await other.ingest.ingest(device, measured('0x01', [now + 12, 2]), forever);
  await process.ingest.ingest(device, measured('0x01', [now + 11, 50]), forever);
  expect(await firedAt(device)).toEqual([]);
});

test('what was measured before a profile was installed does not count for it', async () => {
  const device = await insertDevice(database.db);
  const at = (n: number) => measured('0x01', [now + n, 50]);
  await process.ingest.ingest(device, at(10), forever);
  await installProfile(database.db, device, [countingPurpose(1)]);
  await process.ingest.ingest(device, at(9), forever);
  await process.ingest.ingest(device, at(10), forever);
  expect(await firedAt(device)).toEqual([]);
  await process.ingest.ingest(device, at(11), forever);
  expect(await firedAt(device)).toEqual([11]);
});

test('nor does what was measured while another one ran, and it waited for its answer', async () => {
  const device = await insertDevice(database.db);
  const reads = (sId: string) =>
    Purpose.parse({
      ...countingPurpose(1),
      states: [
        {
          stId: 1,
          events: [{ evId: 3, eventLog: true, causes: [{ sId, thresholds: { isGt: 20 } }] }],
        },
      ],
    });
  const answer = (pId: string) =>
    process.ingest.ingest(
      device,
      uplink({ kind: 'profile-answer', answer: { pId, state: 'current' } }),
      forever,
    );
  await answer(await installProfile(database.db, device, [reads('0x01')]));
  const next = await installProfile(database.db, device, [reads('0x02')]);
  for (const n of [5, 6]) {
    await process.ingest.ingest(device, measured('0x02', [now + n, 50]), forever);
  }
  await answer(next);
  for (const n of [4, 5, 6, 7]) {
    await process.ingest.ingest(device, measured('0x02', [now + n, 50]), forever);
  }
  expect(await firedAt(device)).toEqual([7]);
});

test('a process that takes over a device waits for what another has under way', async () => {
  const { db } = database;
  const device = await insertDevice(db);
  await installProfile(db, device, [countingPurpose(1)]);
  await process.ingest.ingest(device, measured('0x01', [now, 1]), forever);
  const holder = await db.pool.connect();
  try {
    // Measurements can be written, but rejections cannot.
    await holder.query('begin; lock table rejection in access exclusive mode');
    const underWay = uplink({
      kind: 'measurements',
      items: [
        { index: 0, value: { sId: '0x01', ts: now + 10, val: 2 } },
        { index: 1, value: { sId: '0xff', ts: now + 10, val: 2 } },
      ],
    });
    const first = process.ingest.ingest(device, underWay, forever);
    await waitForBlocked(db, 1);
    const late = other.ingest.ingest(device, measured('0x01', [now + 9, 50]), forever);
    await waitForBlocked(db, 2);
    await holder.query('commit');
    await Promise.all([first, late]);
  } finally {
    holder.release();
  }
  expect(await storedValues(db, device)).toEqual([1, 50, 2]);
  expect(await firedAt(device)).toEqual([]);
});
