import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { isUnavailable } from '../../src/db/errors.ts';
import { startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { openTestDatabase, testDatabase, type TestDatabase } from '../support/database.ts';
import { runOn } from '../support/template.ts';

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await testDatabase();
  db = database.db;
  await db.query('create table item (n int primary key)');
});
afterAll(() => database.drop());

const unavailable = expect.objectContaining({ code: 'unavailable' }) as unknown;

describe('a transaction', () => {
  it('is rolled back when its work throws, and releases its connection', async () => {
    for (let n = 0; n < 20; n += 1)
      await expect(
        db.transaction(async (tx) => {
          await tx.query('insert into item values (1)');
          throw new Error('no');
        }),
      ).rejects.toThrow('no');
    expect((await db.query('select from item')).rowCount).toBe(0);
    expect(db.pool.idleCount).toBe(db.pool.totalCount);
  });

  it('fails as "unavailable" if its connection ends between two statements, and the next one works', async () => {
    const lost = db.transaction(async (tx) => {
      const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
      await runOn(database.url, (client) =>
        client.query('select pg_terminate_backend($1, 5000)', [rows[0]?.pid]),
      );
      await tx.query('insert into item values (2)');
    });
    await expect(lost).rejects.toEqual(unavailable);
    await db.transaction((tx) => tx.query('insert into item values (3)'));
    expect((await db.query('select n from item')).rows).toEqual([{ n: 3 }]);
  });

  it('passes on other errors of the database', async () => {
    await expect(db.query('insert into item values (3)')).rejects.toMatchObject({ code: '23505' });
  });
});

describe('values', () => {
  it('are numbers if they are times or identities', async () => {
    const { rows } = await db.query(
      `select ms_to_timestamp($1) as ts, 9007199254740991::bigint as id`,
      [1_700_000_000_123],
    );
    expect(rows).toEqual([{ ts: 1_700_000_000_123, id: 9_007_199_254_740_991 }]);
  });
});

describe('a server that is away', () => {
  let cluster: Cluster;
  let away: Database;
  beforeAll(async () => {
    cluster = await startThrowAwayCluster();
    away = openTestDatabase(cluster.url(), { connectTimeoutMs: 2_000, statementTimeoutMs: 2_000 });
  });
  afterAll(async () => {
    await away.close();
    await cluster.remove();
  });

  it('is "unavailable" while it is stopped, and available again afterwards', async () => {
    await away.query('select 1');
    await cluster.halt('immediate');
    await expect(away.query('select 1')).rejects.toEqual(unavailable);
    await cluster.start();
    await vi.waitFor(() => away.query('select 1'), { timeout: 60_000 });
  });

  it('is "unavailable" if it takes too long, or does not answer at all', async () => {
    await expect(away.query('select pg_sleep(30)')).rejects.toEqual(unavailable);
    const { rows } = await away.query<{ pid: number }>('select pg_backend_pid() as pid');
    process.kill(rows[0]?.pid ?? 0, 'SIGSTOP');
    const stuck = away.transaction((tx) => tx.query('select 1'));
    await expect(stuck).rejects.toEqual(unavailable);
    process.kill(rows[0]?.pid ?? 0, 'SIGCONT');
    await vi.waitFor(() => away.query('select 1'), { timeout: 60_000 });
  });

  it.each([
    [Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), true],
    [Object.assign(new Error('x'), { code: '57P03' }), true],
    [new Error('Connection terminated unexpectedly'), true],
    [Object.assign(new Error('duplicate key'), { code: '23505' }), false],
    ['text', false],
  ])('is told from other errors: %s', (error, expected) => {
    expect(isUnavailable(error)).toBe(expected);
  });
});

describe('a database with other formats of values', () => {
  const noon = Date.UTC(2026, 10, 5, 12);
  // With these settings the text of a double is shorter than with all of its digits.
  const numbers = [0.1 + 0.2, Number.MAX_VALUE, 5e-324, -1 / 3];

  it.each([
    ["datestyle = 'SQL, DMY'", 'extra_float_digits = 0'],
    ["datestyle = 'German'", 'extra_float_digits = -15'],
    ["datestyle = 'Postgres, MDY'", "bytea_output = 'escape'"],
    ["datestyle = 'ISO, YMD'", "timezone = 'Asia/Kathmandu'"],
  ])('is read as any other: %s, %s', async (...settings) => {
    const other = await testDatabase();
    try {
      const name = new URL(other.url).pathname.slice(1);
      for (const setting of settings)
        await runOn(other.url, (client) => client.query(`alter database "${name}" set ${setting}`));
      const opened = openTestDatabase(other.url);
      try {
        const { rows } = await opened.query(
          `select ms_to_timestamp($1) as ts, $2::float8[] as numbers, '\\x00ff'::bytea as bytes`,
          [noon, numbers],
        );
        expect(rows).toEqual([{ ts: noon, numbers, bytes: Buffer.from([0, 255]) }]);
        const written = await opened.query<{ text: string }>(
          `select array_to_string($1::float8[], ' ') as text`,
          [numbers],
        );
        expect(written.rows[0]?.text.split(' ').map(Number)).toEqual(numbers);
      } finally {
        await opened.close();
      }
    } finally {
      await other.drop();
    }
  });
});
