import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import * as harness from './harness.ts';
import { countingPurpose, forever, ingestProcess, measured, now } from './harness.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

/** The times of fired events. A device also records its first state. */
async function firings(device: DeviceIdentity): Promise<number[]> {
  const recorded = await harness.recordedEvents(database.db, device);
  return recorded.filter(({ type }) => type === 'sense').map(({ ts }) => ts);
}

test('devices that are too many to be read at once are stored one after the other', async () => {
  const { db, url } = database;
  const maxRememberedBytes = 64;
  const { ingest, transactions, close } = ingestProcess(url, { maxRememberedBytes });
  const devices = await Promise.all(Array.from({ length: 20 }, () => harness.insertDevice(db)));
  for (const device of devices) await harness.installProfile(db, device, [countingPurpose(2)]);
  const stored = devices.flatMap((device) =>
    [21, 22, 23].map((val, i) => ingest.ingest(device, measured('0x01', [now + i, val]), forever)),
  );
  await Promise.all(stored);
  expect(transactions()).toBeGreaterThanOrEqual(devices.length);
  for (const device of devices) {
    expect(await harness.storedValues(db, device)).toEqual([21, 22, 23]);
    // It fires after two in a row: nothing was evaluated twice or left out.
    expect(await firings(device)).toEqual([now + 1]);
  }
  await close();
});

test('what was forgotten is read again', async () => {
  const { db, url } = database;
  const { ingest, close } = ingestProcess(url);
  const device = await harness.insertDevice(db);
  await harness.installProfile(db, device, [countingPurpose(3)]);
  for (const [i, val] of [21, 22, 23].entries()) {
    await ingest.ingest(device, measured('0x01', [now + i, val]), forever);
    ingest.forget();
  }
  expect(await firings(device)).toEqual([now + 2]);
  await close();
});
