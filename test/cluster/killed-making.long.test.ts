import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { prepareService, type ServiceProcess } from '../faults/service-process.ts';
import { thresholdPurpose } from '../journeys/app.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { ask, openAccount, type Answer } from '../idempotency/repeat.ts';

const lock = 4_711;

const dir = makeTemporaryDir();
let database: TestDatabase;
let service: ServiceProcess;
let other: ServiceProcess;
let token: string;

beforeAll(async () => {
  database = await testDatabase();
  const options = { dir, variables: { DATABASE_URL: database.url } };
  service = await prepareService(options);
  other = await prepareService(options);
  await Promise.all([service.start(), other.start()]);
  token = await openAccount(service.url);
});
afterEach(() => database.db.query('drop trigger if exists stop on idempotency_key'));
afterAll(async () => {
  await service?.kill();
  await other?.kill();
  await database?.drop();
});

/** While `work` runs, a process that writes that column of a key waits, and never commits. */
async function whileStopped(column: 'made' | 'answer', work: () => Promise<void>): Promise<void> {
  const { db } = database;
  await db.query(`
    create or replace function stop() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock(${lock}); return new; end $$`);
  await db.query(`
    create trigger stop before update of ${column} on idempotency_key
      for each row execute function stop()`);
  await db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [lock]);
    await work();
    await db.query(
      `select pg_terminate_backend(pid) from pg_locks
        where locktype = 'advisory' and objid = $1 and not granted`,
      [lock],
    );
  });
}

async function someoneWaits(): Promise<void> {
  const waiting = async () => {
    const { rows } = await database.db.query(
      `select from pg_locks where locktype = 'advisory' and objid = $1 and not granted
          and database = (select oid from pg_database where datname = current_database())`,
      [lock],
    );
    return rows.length;
  };
  await expect.poll(waiting, { timeout: 60_000 }).toBe(1);
}

const make = (url: string, key: string): Promise<Answer> =>
  ask(url, { path: '/v2/purposes', token, key, body: thresholdPurpose(1, 30) });

async function countPurposes(): Promise<number> {
  const { rows } = await database.db.query<{ count: number }>('select count(*) from purpose');
  return rows[0]?.count ?? -1;
}

test.each([
  ['made', 0],
  ['answer', 1],
] as const)(
  'a process that is killed as it writes `%s` of a key leaves nothing made twice',
  async (column, madeBefore) => {
    const before = await countPurposes();
    const key = crypto.randomUUID();
    await whileStopped(column, async () => {
      const cut = make(service.url, key).catch(() => 'cut');
      await someoneWaits();
      await service.kill();
      expect(await cut).toBe('cut');
    });
    await database.db.query('drop trigger stop on idempotency_key');
    expect(await countPurposes()).toBe(before + madeBefore);
    // The claim of one that was not committed ends by itself, and the request waits for that.
    const again = await make(other.url, key);
    expect(again.status, again.text).toBe(200);
    expect(await make(other.url, key)).toEqual(again);
    expect(await countPurposes()).toBe(before + 1);
    await service.start();
    expect(await make(service.url, key)).toEqual(again);
  },
  120_000,
);
