import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openDatabase, type Database } from '../../src/db/database.ts';
import { processName, watchOtherProcesses } from '../../src/db/lease.ts';
import { until } from '../connector/harness.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let own: Database;
let monotonicMs = 0;
let watch: ReturnType<typeof watchOtherProcesses> | null = null;

const open = (applicationName: string) =>
  openDatabase({
    connectionString: database.url,
    schema: 'public',
    applicationName,
    maxConnections: 3,
    connectTimeoutMs: 5_000,
    statementTimeoutMs: 60_000,
    onIdleError: () => undefined,
  });

beforeAll(async () => {
  database = await testDatabase(databaseKinds[0]);
  own = open(processName('own'));
});
afterEach(() => watch?.close());
afterAll(async () => {
  await own.close();
  await database.drop();
});

/** Looks again and again, while time moves only by `stepMs`. */
function startWatch(stepMs = 0) {
  return (watch = watchOtherProcesses({ db: own, monotonicClock: () => (monotonicMs += stepMs) }));
}

test('the answer is unknown at first; a process that is alone learns that', async () => {
  const { areBusy } = startWatch();
  expect(areBusy()).toBe(true);
  await until(() => !areBusy());
});

test('work of the own process does not count', async () => {
  const { areBusy } = startWatch();
  await own.transaction(async (tx) => {
    await tx.query('select 1');
    await until(() => !areBusy());
  });
});

test('a statement or a transaction of another process is noticed, and so is its end', async () => {
  const other = open(processName('other'));
  const stranger = open('psql');
  try {
    const { areBusy } = startWatch(1);
    await until(() => !areBusy());
    await stranger.transaction(async (tx) => {
      await tx.query('select 1');
      monotonicMs += 300;
      await until(() => !areBusy());
    });
    await other.transaction(async (tx) => {
      await tx.query('select 1');
      await until(areBusy);
    });
    await until(() => !areBusy());
  } finally {
    await Promise.all([other.close(), stranger.close()]);
  }
});

test('a database that does not answer counts as busy', async () => {
  const away = { query: () => Promise.reject(new Error('away')) };
  const { areBusy, close } = watchOtherProcesses({
    db: away as never,
    monotonicClock: () => monotonicMs,
  });
  for (let n = 0; n < 10; n += 1) {
    expect(areBusy()).toBe(true);
    await Promise.resolve();
  }
  close();
});
