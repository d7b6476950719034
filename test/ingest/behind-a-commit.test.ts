import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import {
  countingPurpose,
  forever,
  ingestProcess,
  insertDevice,
  installProfile,
} from './harness.ts';
import { measured, now, recordedEvents, rejections, storedValues } from './harness.ts';
import type { IngestProcess } from './harness.ts';

const gate = 4_242;

let database: TestDatabase;
let process: IngestProcess;
beforeEach(async () => {
  database = await testDatabase();
  process = ingestProcess(database.url);
  // A trigger at the commit of a device's evidence, which waits for whoever holds the lock.
  await database.db.query(`
    create sequence commits;
    create table refused (number int);
    create function at_commit() returns trigger language plpgsql as $$
      begin
        perform pg_advisory_xact_lock_shared(${gate});
        if nextval('commits') in (select number from refused) then
          raise exception using errcode = '53100';
        end if;
        return null;
      end $$;
    create constraint trigger at_commit after update on device_state
      deferrable initially deferred for each row
      when (old.runtime::text is distinct from new.runtime::text)
      execute function at_commit();
    create constraint trigger at_commit after insert on series
      deferrable initially deferred for each row
      when (new.s_id = '0x02')
      execute function at_commit()`);
});
afterEach(async () => {
  await process.close();
  await database.drop();
});

test.each([
  ['was made', []],
  ['failed', [2]],
  ['failed again', [2, 3]],
])('messages keep their order when others began behind a commit that %s', async (_how, refused) => {
  const { db } = database;
  await db.query('insert into refused select unnest($1::int[])', [refused]);
  const device = await insertDevice(db);
  await installProfile(db, device, [countingPurpose(3)]);
  // The installation of the profile counts too.
  await db.query('alter sequence commits restart');
  const settled: number[] = [];
  const send = async (n: number, val: number) => {
    await process.ingest.ingest(device, measured('0x01', [now + n, val]), forever);
    settled.push(n);
  };
  await send(0, 25);
  const holder = await db.pool.connect();
  await holder.query(`select pg_advisory_lock(${gate})`);
  const sent = [send(1, 26)];
  await waitForGate(db);
  sent.push(send(2, 27), send(3, 15));
  await expect.poll(process.transactions).toBe(3);
  expect(settled).toEqual([0]);
  await holder.query(`select pg_advisory_unlock(${gate})`);
  holder.release();
  await Promise.all(sent);

  expect(settled).toEqual([0, 1, 2, 3]);
  expect(await storedValues(db, device)).toEqual([25, 26, 27, 15]);
  // The third in a row. It would be another one if a value were evaluated twice, or after a later one.
  const judged = (await recordedEvents(db, device)).filter(({ type }) => type === 'sense');
  expect(judged).toMatchObject([{ ts: now + 2 }]);
  expect(await rejections(db, device)).toEqual([]);
});

test('values measured behind a commit that failed are evaluated when they are sent again', async () => {
  const { db } = database;
  const device = await insertDevice(db);
  await installProfile(db, device, [countingPurpose(2)]);
  const send = (sId: string, n: number, val: number) =>
    process.ingest.ingest(device, measured(sId, [now + n, val]), forever);
  await send('0x01', 0, 0);
  await send('0x01', 1, 0);
  // Leaves the evidence as it is, and stores a new sense, so its commit has to wait.
  await db.query('insert into refused select last_value + 1 from commits');
  const holder = await db.pool.connect();
  await holder.query(`select pg_advisory_lock(${gate})`);
  const sent = [send('0x02', 2, 1)];
  await waitForGate(db);
  sent.push(send('0x01', 3, 0), send('0x01', 4, 25), send('0x01', 5, 26));
  await holder.query(`select pg_advisory_unlock(${gate})`);
  holder.release();
  await Promise.all(sent);

  const { rows } = await db.query<{ met: boolean }>(
    'select last_value > number as met from commits, refused',
  );
  expect(rows).toEqual([{ met: true }]);
  expect(await storedValues(db, device)).toEqual([0, 0, 1, 0, 25, 26]);
  const judged = (await recordedEvents(db, device)).filter(({ type }) => type === 'sense');
  expect(judged).toMatchObject([{ ts: now + 5 }]);
});

test('many devices keep their order while commits fail now and then', async () => {
  const { db } = database;
  const devices = await Promise.all(Array.from({ length: 20 }, () => insertDevice(db)));
  for (const device of devices) await installProfile(db, device, [countingPurpose(3)]);
  // Each device's row counts.
  await db.query('alter sequence commits restart');
  await db.query('insert into refused values (1), (30), (31), (75), (110), (111), (112)');
  const values = Array.from({ length: 24 }, (_, n) => 21 + n);
  const settled = devices.map((): number[] => []);
  const sent: Promise<unknown>[] = [];
  for (const [round, val] of values.entries()) {
    for (const [i, device] of devices.entries()) {
      const stored = process.ingest.ingest(device, measured('0x01', [now + val, val]), forever);
      sent.push(stored.then(() => settled[i]?.push(val)));
    }
    // Two rounds are under way, so one runs behind the commit of the other.
    await sent[(round - 1) * devices.length];
  }
  await Promise.all(sent);

  const { rows } = await db.query<{ met: boolean }>('select last_value > 112 as met from commits');
  expect(rows).toEqual([{ met: true }]);
  for (const [i, device] of devices.entries()) {
    expect(settled[i]).toEqual(values);
    expect(await storedValues(db, device)).toEqual(values);
    const judged = (await recordedEvents(db, device)).filter(({ type }) => type === 'sense');
    expect(judged.map(({ ts }) => ts - now)).toEqual(values.filter((_, n) => n % 3 === 2));
    expect(await rejections(db, device)).toEqual([]);
  }
});

/** Waits until a commit waits for whoever holds the lock. */
async function waitForGate(db: Database): Promise<void> {
  const waits = 'select from pg_locks where not granted and objid = $1';
  await expect.poll(async () => (await db.query(waits, [gate])).rowCount).toBe(1);
}
