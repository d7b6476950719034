import { afterAll, beforeAll, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { Database } from '../../src/db/database.ts';
import { expectedEvents, markOf } from '../faults/expected-events.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { countingPurpose, forever, ingestProcess, insertDevice } from './harness.ts';
import {
  installProfile,
  measured,
  now,
  recordedEvents,
  rejections,
  storedValues,
} from './harness.ts';

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await testDatabase();
  ({ db } = database);
});
afterAll(() => database.drop());

const vals = Array.from({ length: 200 }, (_, n) => 15 + (n % 11));
const points = vals.map((val, n): [number, number] => [now + n, val]);
const message = measured('0x01', ...points);
const counting = countingPurpose(3);
/** A busy machine takes its time. */
const patient = { timeout: 60_000 };

/** What the engine makes of the whole message, without the move into the purpose. */
const expected = (pId: string) =>
  expectedEvents(
    pId,
    [counting],
    points.map(([ts, val]) => ({ sId: '0x01', ts, val })),
  );

async function firings(device: Parameters<typeof recordedEvents>[1]): Promise<string[]> {
  const events = await recordedEvents(db, device);
  return events
    .filter(({ type }) => type === 'sense')
    .map(({ ts }) => markOf('sense', ts, 3))
    .sort();
}

test('a message is stored in as many transactions as it takes, and acknowledged after the last', async () => {
  const process = ingestProcess(database.url, { maxBatchItems: 30 });
  const [device, other] = [await insertDevice(db), await insertDevice(db)];
  const pId = await installProfile(db, device, [counting]);
  const stored = process.ingest.ingest(device, message, forever);
  await process.ingest.ingest(other, measured('0x01', [now, 1], [now + 1, 2]), forever);
  await stored;
  expect(process.transactions()).toBeGreaterThan(5);
  await expect.poll(process.ingest.depth, patient).toBe(0);
  expect(await storedValues(db, device)).toEqual(vals);
  expect(await storedValues(db, other)).toEqual([1, 2]);
  expect(await firings(device)).toEqual(expected(pId));
  await process.close();
});

test('a message that many causes read is cut; one of as many measurements without them is not', async () => {
  const process = ingestProcess(database.url);
  const causes = Array.from({ length: 32 }, (_, isGt) => ({ sId: '0x01', thresholds: { isGt } }));
  const never = { sId: '0x01', thresholds: { isGt: 1_000 } };
  const events = Array.from({ length: 64 }, (_, evId) => ({
    evId,
    causes: [never, ...causes.slice(1)],
  }));
  const devices = [await insertDevice(db), await insertDevice(db)] as const;
  const states = [{ stId: 1, events }];
  await installProfile(db, devices[0], [Purpose.parse({ puId: 1, initStId: 1, states })]);
  const counts: number[] = [];
  const thousand = Array.from({ length: 1_000 }, (_, n): [number, number] => [now + n, n % 50]);
  for (const device of devices) {
    const before = process.transactions();
    await process.ingest.ingest(device, measured('0x01', ...thousand), forever);
    counts.push(process.transactions() - before);
    expect(await storedValues(db, device)).toHaveLength(1_000);
  }
  expect(counts[0]).toBeGreaterThan(5);
  expect(counts[1]).toBe(1);
  await process.close();
});

test('later messages keep their order', async () => {
  const process = ingestProcess(database.url, { maxBatchItems: 30 });
  const device = await insertDevice(db);
  const pId = await installProfile(db, device, [counting]);
  const parts = [0, 50, 150].map((from, i, all) => points.slice(from, all[i + 1] ?? points.length));
  const settled: number[] = [];
  await Promise.all(
    parts.map(async (part, i) => {
      await process.ingest.ingest(device, measured('0x01', ...part), forever);
      settled.push(i);
    }),
  );
  expect(settled).toEqual([0, 1, 2]);
  expect(await storedValues(db, device)).toEqual(vals);
  expect(await firings(device)).toEqual(expected(pId));
  await process.close();
});

test('a message stored in part by another process is evaluated once when it is sent again', async () => {
  const device = await insertDevice(db);
  const pId = await installProfile(db, device, [counting]);
  // To another process the database is full from here on.
  await db.query(`
    create function full_at() returns trigger language plpgsql as
    $$ begin raise exception 'full' using errcode = '53100'; end $$;
    create trigger full_at before insert on measurement
    for each row when (new.ts >= ms_to_timestamp(${now + 120})) execute function full_at()`);
  const first = ingestProcess(database.url, { maxBatchItems: 30 });
  const failed = expect(first.ingest.ingest(device, message, forever)).rejects.toMatchObject({
    code: 'unavailable',
  });
  await expect
    .poll(async () => (await storedValues(db, device)).length, patient)
    .toBeGreaterThan(60);
  await first.ingest.close(0);
  await failed;
  await first.close();
  expect((await storedValues(db, device)).length).toBeLessThan(121);
  await db.query('drop trigger full_at on measurement');
  const second = ingestProcess(database.url, { maxBatchItems: 30 });
  await second.ingest.ingest(device, message, forever);
  expect(await storedValues(db, device)).toEqual(vals);
  expect(await firings(device)).toEqual(expected(pId));
  await second.close();
});

test('in a message that is cut, only the one bad item is set apart', async () => {
  await db.query(`
    create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'poison' using errcode = '22000'; end $$;
    create trigger poison before insert on measurement
    for each row when (new.val = 666) execute function refuse()`);
  const process = ingestProcess(database.url, { maxBatchItems: 30 });
  const device = await insertDevice(db);
  await installProfile(db, device, [countingPurpose(1)]);
  const poisoned = points.map(([ts, val], n): [number, number] => [ts, n === 77 ? 666 : val]);
  await process.ingest.ingest(device, measured('0x01', ...poisoned), forever);
  await db.query('drop trigger poison on measurement');
  expect(await storedValues(db, device)).toEqual(vals.filter((_, n) => n !== 77));
  expect(await rejections(db, device)).toMatchObject([{ reason: 'unstorable', path: '/77' }]);
  const warm = points.filter(([, val], n) => val > 20 && n !== 77);
  expect(await firings(device)).toEqual(warm.map(([ts]) => markOf('sense', ts, 3)).sort());
  await process.close();
});

test('the rest of a message is dropped when its connection closes', async () => {
  const process = ingestProcess(database.url, { maxBatchItems: 30 });
  const device = await insertDevice(db);
  const holder = await db.pool.connect();
  try {
    // From the second transaction on.
    await db.query(`
      create function wait_at() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(4243); return new; end $$;
      create trigger wait_at before insert on measurement
      for each row when (new.ts >= ms_to_timestamp(${now + 30})) execute function wait_at()`);
    await holder.query('select pg_advisory_lock(4243)');
    const connection = new AbortController();
    const sent = expect(
      process.ingest.ingest(device, message, connection.signal),
    ).rejects.toMatchObject({ code: 'unavailable' });
    await expect.poll(async () => (await storedValues(db, device)).length, patient).toBe(30);
    connection.abort();
    process.ingest.withdraw(device);
    await holder.query('select pg_advisory_unlock(4243)');
    await sent;
    // What was in a transaction when it closed is stored.
    await process.ingest.ingest(device, measured('0x02', [now, 1]), forever);
    const stored = await storedValues(db, device);
    expect(stored.length).toBeLessThan(100);
    await expect.poll(process.ingest.depth, patient).toBe(0);
  } finally {
    holder.release();
    await db.query('drop trigger wait_at on measurement');
  }
  await process.close();
});

test('a measurement that fires a thousand events records them all, in order', async () => {
  const process = ingestProcess(database.url);
  const device = await insertDevice(db);
  const causes = [{ sId: '0x01', thresholds: { isAny: true } }];
  const states = Array.from({ length: 16 }, (_, stId) => ({
    stId,
    isGlobal: true,
    events: Array.from({ length: 64 }, (_unused, evId) => ({ evId, eventLog: true, causes })),
  }));
  await installProfile(db, device, [Purpose.parse({ puId: 1, initStId: 0, states })]);
  await process.ingest.ingest(device, measured('0x01', [now, 1], [now + 1, 2]), forever);
  const events = await recordedEvents(db, device);
  const fired = events.flatMap(({ ts, body }) =>
    'senses' in body.cause ? [[ts, body.cause.engine.stId, body.cause.engine.evId]] : [],
  );
  const once = (ts: number) =>
    states.flatMap(({ stId, events }) => events.map(({ evId }) => [ts, stId, evId]));
  expect(fired).toEqual([...once(now), ...once(now + 1)]);
  await process.close();
});
