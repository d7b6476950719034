import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { Database } from '../../src/db/database.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { forever, ingestProcess, insertDevice, measured, now, waitForBlocked } from './harness.ts';
import { rejections, storedValues, type IngestProcess, type ProcessOptions } from './harness.ts';

let database: TestDatabase;
let db: Database;
let device: DeviceIdentity;
let process: IngestProcess;
beforeEach(async () => {
  database = await testDatabase();
  ({ db } = database);
  device = await insertDevice(db);
  await db.query(`
    create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'not now' using errcode = tg_argv[0]; end $$`);
});
afterEach(async () => {
  await process.close();
  await database.drop();
});

const start = (options: ProcessOptions) => (process = ingestProcess(database.url, options));

/** What the database answers to each measurement with the value 666. */
const answerWith = (sqlState: string) =>
  db.query(`
    create trigger refused before insert on measurement
    for each row when (new.val = 666) execute function refuse('${sqlState}')`);
const answerWithNothing = () => db.query('drop trigger refused on measurement');

const send = (n: number, val: number) =>
  process.ingest.ingest(device, measured('0x01', [now + n, val]), forever);

describe.each([
  ['is away (its disk is full)', '53100'],
  ['chooses another transaction in a deadlock, each time', '40P01'],
  ['has other tables', '42703'],
])('a database that %s', (_what, sqlState) => {
  test('is tried a limited number of times; then nothing is acknowledged, and a repetition stores everything', async () => {
    start({ retry: { attempts: 4, forMs: 600_000 } });
    await send(0, 1);
    await answerWith(sqlState);
    const before = process.transactions();
    const failed = [send(1, 666), send(2, 2)].map((sent) =>
      expect(sent).rejects.toMatchObject({ code: 'unavailable' }),
    );
    await Promise.all(failed);
    expect(process.transactions() - before).toBe(4);
    expect(process.ingest.depth()).toBe(0);
    expect(await storedValues(db, device)).toEqual([1]);
    expect(await rejections(db, device)).toEqual([]);
    await answerWithNothing();
    await Promise.all([send(1, 666), send(2, 2)]);
    expect(await storedValues(db, device)).toEqual([1, 666, 2]);
  });

  test('is tried for a limited time', async () => {
    start({ retry: { attempts: 1_000_000, forMs: 1_000 } });
    await answerWith(sqlState);
    await expect(send(1, 666)).rejects.toMatchObject({ code: 'unavailable' });
    expect(process.transactions()).toBeGreaterThan(2);
  });
});

test('messages that waited behind given-up ones are sent again too, so the order stays', async () => {
  start({ retry: { attempts: 5, forMs: 600_000 } });
  await answerWith('53100');
  const order: string[] = [];
  const note = (name: string, sent: Promise<void>) =>
    sent.then(
      () => order.push(`${name} stored`),
      () => order.push(`${name} failed`),
    );
  const first = note('first', send(1, 666));
  await expect.poll(process.transactions).toBeGreaterThan(0);
  const other = await insertDevice(db);
  const others = process.ingest.ingest(other, measured('0x01', [now, 1]), forever);
  await Promise.all([first, note('second', send(2, 2)), note('third', send(3, 3)), others]);
  expect(order).toEqual(['first failed', 'second failed', 'third failed']);
  expect(await storedValues(db, device)).toEqual([]);
  expect(await storedValues(db, other)).toEqual([1]);
  expect(process.ingest.depth()).toBe(0);
});

test('nor is what a batch planned on top of one that was given up', async () => {
  start({ retry: { attempts: 2, forMs: 600_000 } });
  await send(0, 0);
  await db.query(`
    create function refuse_late() returns trigger language plpgsql as $$
      begin
        perform pg_advisory_xact_lock_shared(4245);
        raise exception 'not now' using errcode = '53100';
      end $$;
    create constraint trigger refuse_late after insert on series
      deferrable initially deferred for each row
      when (new.s_id = '0x02') execute function refuse_late()`);
  const holder = await db.pool.connect();
  await holder.query('select pg_advisory_lock(4245)');
  const first = process.ingest.ingest(device, measured('0x02', [now, 1]), forever);
  const fails = [expect(first).rejects.toMatchObject({ code: 'unavailable' })];
  // Its commit waits for the lock, and the second batch is planned behind it.
  await waitForBlocked(db);
  fails.push(expect(send(1, 1)).rejects.toMatchObject({ code: 'unavailable' }));
  await expect.poll(process.transactions).toBe(3);
  await holder.query('select pg_advisory_unlock(4245)');
  holder.release();
  await Promise.all(fails);
  expect(await storedValues(db, device)).toEqual([0]);
});

describe('an item that the database refuses', () => {
  const whole = JSON.stringify(
    Array.from({ length: 300 }, (_, n) => ({ sId: '0x01', val: n === 7 ? 666 : n, ts: now + n })),
  );
  const message = (payload: string, ...refused: number[]) => ({
    ...measured(
      '0x01',
      ...Array.from({ length: 12 }, (_, n): [number, number] => [
        now + n,
        refused.includes(n) ? 666 : n,
      ]),
    ),
    excerpt: payload.slice(0, 1_024),
    payload,
  });

  test('keeps the whole payload of its message, and the message’s other items are stored', async () => {
    start({});
    await answerWith('23514');
    await process.ingest.ingest(device, message(whole, 7), forever);
    expect(await storedValues(db, device)).toHaveLength(11);
    const kept = await rejections(db, device);
    expect(kept).toMatchObject([{ reason: 'unstorable', path: '/7' }]);
    expect(kept[0]?.payload).toBe(whole);
    expect(whole.length).toBeGreaterThan(5_000);
  });

  test('keeps it once, even if several items of a message are refused', async () => {
    start({});
    await answerWith('23514');
    await process.ingest.ingest(device, message(whole, 2, 7, 11), forever);
    const payloads = (await rejections(db, device)).map(({ payload }) => payload.length);
    const excerpt = 1_024;
    expect(payloads.toSorted((a, b) => a - b)).toEqual([excerpt, excerpt, whole.length]);
  });

  test('keeps no more of it than a device’s rejections may take', async () => {
    start({ limits: { rejectionBytesPerDevice: 3_001 } });
    await answerWith('23514');
    await process.ingest.ingest(device, message('é'.repeat(4_000), 7), forever);
    expect((await rejections(db, device))[0]?.payload).toBe('é'.repeat(1_500));
  });
});

test('messages of a device keep their order while its batch is split', async () => {
  start({ anotherAtMessages: 1 });
  await send(0, 0);
  await answerWith('23514');
  const holder = await db.pool.connect();
  try {
    await db.query(`
      create function wait_here() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(4244); return new; end $$;
      create trigger wait_here before insert on measurement
      for each row when (new.val = 5) execute function wait_here()`);
    await holder.query('select pg_advisory_lock(4244)');
    const stored: string[] = [];
    const note = (name: string, sent: Promise<void>) => sent.then(() => stored.push(name));
    // Split: the first is refused, the second waits, and the third must not be stored before it.
    const sent = [note('first', send(1, 666)), note('second', send(2, 5))];
    await expect.poll(() => stored).toEqual(['first']);
    sent.push(note('third', send(3, 3)));
    const other = await insertDevice(db);
    await process.ingest.ingest(other, measured('0x01', [now, 1]), forever);
    expect(await storedValues(db, device)).toEqual([0]);
    await holder.query('select pg_advisory_unlock(4244)');
    await Promise.all(sent);
    expect(stored).toEqual(['first', 'second', 'third']);
  } finally {
    holder.release();
  }
});
