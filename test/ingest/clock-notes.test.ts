import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { findClockNotes } from '../../src/ingest/save-states.ts';
import { findNewest } from '../../src/measurements/store.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { countingPurpose, ingestProcess, insertDevice, installProfile, now } from './harness.ts';
import type { IngestProcess } from './harness.ts';
import { send, type Point } from './points.ts';

let database: TestDatabase;
let process: IngestProcess;
let device: DeviceIdentity;
beforeAll(async () => {
  database = await testDatabase();
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

async function findNotes() {
  const { deviceId } = device;
  const newest = await findNewest(database.db, [{ deviceId, sId: '0x01' }]);
  return findClockNotes(database.db, deviceId, newest.get(deviceId) ?? {});
}

const listNotes = async () => (await findNotes()).notes;

const values = (...points: Point[]) => send(process, device, points);

test('a sense with a correct clock has no note', async () => {
  await values([0, 1], [1, 2]);
  expect(await listNotes()).toEqual([]);
});

test('they say how many of the last values came too late, and since when', async () => {
  await values([0, 1]);
  // In any order: the last twelve are older than the newest.
  await values(...Array.from({ length: 12 }, (_, n): Point => [-1_000 + ((n * 7) % 12), n, n]));
  expect(await listNotes()).toEqual([{ sId: '0x01', clockTs: now, late: 12, aheadTs: null }]);
  await values([100, 1, 100]);
  expect(await listNotes()).toEqual([]);
});

test('they say which time is ahead', async () => {
  await values([60_000, 1]);
  const ahead = { sId: '0x01', late: 0, aheadTs: now + 60_000 };
  expect(await findNotes()).toEqual({
    notes: [{ ...ahead, clockTs: null }],
    remarked: { aheadTs: expect.any(Number) as number, backTs: null },
  });
  await values([10, 1, 10]);
  expect(await listNotes()).toEqual([{ ...ahead, clockTs: now + 10 }]);
  await values([60_001, 1, 60_001]);
  expect(await listNotes()).toEqual([]);
});
