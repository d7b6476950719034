import { afterAll, beforeAll, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { forever, ingestProcess, insertDevice, installProfile, measured, now } from './harness.ts';
import { recordedEvents, storedValues, uplink, type IngestProcess } from './harness.ts';

const hourMs = 3_600_000;

let database: TestDatabase;
/** `whole` has room for everything that time triggers in one transaction, `cut` for only a part. */
let whole: IngestProcess;
let cut: IngestProcess;
beforeAll(async () => {
  database = await testDatabase();
  whole = ingestProcess(database.url, { maxBatchItems: 1_000_000 });
  cut = ingestProcess(database.url, { maxBatchItems: 300 });
});
afterAll(async () => {
  await Promise.all([whole.close(), cut.close()]);
  await database.drop();
});

/** Two states that lead to each other after an hour's silence. A value ends it. */
const restless = Purpose.parse({
  puId: 7,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: [
      {
        evId: 1,
        eventLog: true,
        causes: [{ sId: '0x01', threshold: { noneForMs: hourMs } }],
        actions: { engine: { gotoStId: 3 - stId } },
      },
      {
        evId: 2,
        eventLog: true,
        causes: [{ sId: '0x01', thresholds: { isGt: 100 } }],
      },
    ],
  })),
});

async function addDevice({ ingest }: IngestProcess): Promise<DeviceIdentity> {
  const device = await insertDevice(database.db);
  const pId = await installProfile(database.db, device, [restless]);
  await database.db.query('update profile set created_at = $2 where id = $1', [pId, new Date(now)]);
  await ingest.ingest(device, { ...measured('0x01', [now, 1]), arrivedTs: now }, forever);
  return device;
}

/** The device's events without the number of its profile, which differs. */
async function eventsOf(device: DeviceIdentity) {
  const events = await recordedEvents(database.db, device);
  return events.map(({ type, ts, body }) => ({
    type,
    ts,
    what:
      'event' in body
        ? [body.event, body.newValue]
        : [body.cause.engine.stId, body.cause.engine.evId],
  }));
}

test('a backlog of ticks is evaluated in several transactions, before the message that waits for it', async () => {
  const hours = 400;
  const at = now + hours * hourMs + 1;
  const message = { ...measured('0x01', [at, 101]), arrivedTs: at };
  const refused = {
    ...uplink({ kind: 'none' }, at + 1),
    rejections: [{ reason: 'invalid-json' as const, message: '', path: '' }],
  };
  const devices = [await addDevice(whole), await addDevice(cut)] as const;
  const before = [whole.transactions(), cut.transactions()] as const;
  for (const [n, { ingest }] of [whole, cut].entries()) {
    const device = devices[n] as DeviceIdentity;
    await Promise.all([message, refused].map((each) => ingest.ingest(device, each, forever)));
  }
  const [one, other] = [await eventsOf(devices[0]), await eventsOf(devices[1])];
  // Each hour an event and a change of state, plus the purpose that was entered and the last event.
  expect(one).toHaveLength(2 * hours + 2);
  expect(one.at(-1)).toEqual({ type: 'sense', ts: at, what: [1, 2] });
  expect(other).toEqual(one);
  expect(await storedValues(database.db, devices[1])).toEqual([1, 101]);
  expect(whole.transactions() - before[0]).toBeLessThan(3);
  expect(cut.transactions() - before[1]).toBeGreaterThan(3);
  expect(cut.ingest.depth()).toBe(0);
});

test('a tick does what there is room for, and the next one continues', async () => {
  const device = await addDevice(cut);
  const counts: number[] = [];
  const count = async () => (await eventsOf(device)).length;
  const tick = () =>
    new Promise<void>((stored, failed) =>
      cut.ingest.tick(device, { isWithdrawn: false, stored, failed }),
    );
  for (let n = 0; n < 3; n += 1) {
    // It falls due again in half a second.
    await database.db.query(
      'update device_due set due_at = ms_to_timestamp($2) where device_id = $1',
      [device.deviceId, now],
    );
    await tick();
    counts.push(await count());
  }
  const [first = 0, second = 0, third = 0] = counts;
  expect(first).toBeGreaterThan(50);
  expect(second - first).toBe(third - second);
  expect(third).toBeLessThan(1_000);
  const events = (await eventsOf(device)).filter(({ type }) => type === 'sense');
  expect(events.map(({ ts }) => (ts - now) / hourMs)).toEqual(events.map((_, n) => n + 1));
});
