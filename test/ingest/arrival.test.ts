import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity, Item, SentMeasurement } from '../../src/contract/uplink.ts';
import { nextArrival } from '../../src/ingest/rules/arrival.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import {
  countingPurpose,
  forever,
  ingestProcess,
  insertDevice,
  installProfile,
  type IngestProcess,
  now,
  recordedEvents,
  uplink,
} from './harness.ts';
import { send } from './points.ts';

let database: TestDatabase;
let process: IngestProcess;
let another: IngestProcess;
let device: DeviceIdentity;
beforeAll(async () => {
  database = await testDatabase();
  process = ingestProcess(database.url, { clock: () => now + 65_000 });
  another = ingestProcess(database.url);
});
afterAll(async () => {
  await Promise.all([process.close(), another.close()]);
  await database.drop();
});
beforeEach(async () => {
  device = await insertDevice(database.db);
});

/** What was read of the device is kept with its first message, so that the test's begin at place 0. */
async function start(purpose: Purpose = countingPurpose(1)): Promise<void> {
  await installProfile(database.db, device, [purpose]);
  await process.ingest.ingest(device, uplink({ kind: 'none' }, now - 1_000), forever);
}

/** Value, arrival in ms after `now`, and place of what is stored, by time. */
async function stored() {
  const { rows } = await database.db.query<{ val: number; arrived: number; nth: number | null }>(
    `select m.val, m.arrived, m.nth
       from measurement m join series s on s.id = m.series_id
      where s.device_id = $1 order by m.ts`,
    [device.deviceId],
  );
  return rows.map(({ val, arrived, nth }) => [val, arrived - now, nth]);
}

test('values have the arrival of their message and a place in the order of evaluation', async () => {
  await start();
  const item = (val: number, ts: number, isStamped?: true): Item<SentMeasurement> => ({
    index: null,
    value: { sId: '0x01', val, ts: now + ts },
    ...(isStamped && { isStamped }),
  });
  const items = [item(1, -20), item(2, -10), item(3, 0, true), item(4, 5)];
  await process.ingest.ingest(device, uplink({ kind: 'measurements', items }), forever);
  // Another message of the same millisecond continues; the next one begins anew.
  await send(process, device, [
    [6, 5],
    [7, 6, 1],
  ]);
  expect(await stored()).toEqual([
    [1, 0, null],
    [2, 0, 1],
    [3, 0, -3],
    [4, 0, 3],
    [5, 0, 4],
    [6, 1, null],
  ]);
});

test('a first value without a time is told from one with a time', async () => {
  await start();
  const value = { sId: '0x01', val: 1, ts: now };
  const items = [{ index: null, value, isStamped: true as const }];
  await process.ingest.ingest(device, uplink({ kind: 'measurements', items }), forever);
  expect(await stored()).toEqual([[1, 0, -1]]);
});

test('a message that was overtaken arrives with the one before, also for its events', async () => {
  await start();
  await send(process, device, [
    [0, 1, 1_000],
    [10, 30, 400],
  ]);
  expect(await stored()).toEqual([
    [1, 1_000, null],
    [30, 1_000, 1],
  ]);
  const [event] = (await recordedEvents(database.db, device)).filter(
    ({ type }) => type === 'sense',
  );
  expect(event?.body).toMatchObject({ arrivedTs: now + 1_000 });
});

test('so does one of another process, a millisecond later: it does not know the places', async () => {
  await start();
  await send(process, device, [[0, 1, 1_000]]);
  await send(another, device, [
    [10, 2, 400],
    [20, 3, 1_001],
  ]);
  expect(await stored()).toEqual([
    [1, 1_000, null],
    [2, 1_001, null],
    [3, 1_001, 1],
  ]);
});

test('nor does one of another process count what came without a time as ahead', async () => {
  await start();
  await send(another, device, [[null, 1, 100_000]]);
  await send(process, device, [[99_500, 30]]);
  const events = await recordedEvents(database.db, device);
  expect(events.filter(({ type }) => type === 'sense')).toEqual([]);
});

test('no message arrives before a tick that has run, whoever stores it', async () => {
  const causes = [{ sId: '0x01', threshold: { noneForMs: 60_000 } }];
  const event = { evId: 3, eventLog: true, causes };
  await start(Purpose.parse({ puId: 7, initStId: 1, states: [{ stId: 1, events: [event] }] }));
  await send(process, device, [[0, 1]]);
  await new Promise<void>((resolve, failed) =>
    process.ingest.tick(device, { isWithdrawn: false, stored: resolve, failed }),
  );
  await send(another, device, [[10, 2, 59_000]]);
  expect(await stored()).toEqual([
    [1, 0, null],
    [2, 65_001, null],
  ]);
});

test('after a clock that was set back by more than a minute, arrivals begin anew', async () => {
  let clockTs = now + 100_000;
  const own = ingestProcess(database.url, { clock: () => clockTs });
  await start();
  await send(own, device, [
    [0, 1, 100_000],
    // Only its message is old: it was overtaken, however long ago.
    [1, 2, 30_000],
  ]);
  clockTs = now + 40_000;
  await send(own, device, [[2, 3, 40_000]]);
  clockTs = now + 39_999;
  await send(own, device, [[3, 4, 39_999]]);
  await own.close();
  expect(await stored()).toEqual([
    [1, 100_000, null],
    [2, 100_000, 1],
    [3, 100_000, 2],
    [4, 39_999, 1],
  ]);
});

test('a redelivery keeps the arrival that is stored', async () => {
  await start();
  await send(process, device, [[0, 1]]);
  await send(another, device, [[0, 1, 5_000]]);
  expect(await stored()).toEqual([[1, 0, null]]);
});

test('a message beyond the places of its millisecond is given the next one', () => {
  const last = { ts: 7, places: 32_757 };
  expect(nextArrival(last, 7, 2)).toEqual(last);
  expect(nextArrival(last, 7, 3)).toEqual({ ts: 8, places: 0 });
});
