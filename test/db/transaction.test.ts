import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import type { Committing, Transaction } from '../../src/db/transaction.ts';
import { openTestDatabase, testDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await testDatabase();
  db = openTestDatabase(database.url, { pipeline: true });
  await db.query(`create table item (n int unique deferrable initially deferred)`);
});
beforeEach(() => db.query('truncate item'));
afterAll(async () => {
  await db.close();
  await database.drop();
});

const unavailable = expect.objectContaining({ code: 'unavailable' }) as unknown;

async function add(tx: Transaction, ...numbers: number[]): Promise<number> {
  const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
  await tx.query('insert into item select unnest($1::int[])', [numbers]);
  return rows[0]?.pid ?? 0;
}

async function stored(): Promise<number[]> {
  const { rows } = await db.query<{ n: number }>('select n from item order by n');
  return rows.map(({ n }) => n);
}

/** One transaction, and another that begins behind its commit; how both end. */
function twoOf(first: number[], second: number[]) {
  const { promise: committing, resolve } = Promise.withResolvers<Committing>();
  return Promise.allSettled([
    db.transaction((tx) => add(tx, ...first), { onCommitting: resolve }),
    committing.then((behind) => db.transaction((tx) => add(tx, ...second), { behind })),
  ]);
}

it('begins behind the commit of another, on its connection', async () => {
  const [first, second] = await twoOf([1], [2]);
  expect(first).toMatchObject({ status: 'fulfilled' });
  expect(second).toEqual(first);
  expect(await stored()).toEqual([1, 2]);
  expect(db.pool.idleCount).toBe(db.pool.totalCount);
});

it('does not commit behind a commit that failed', async () => {
  const [first, second] = await twoOf([1, 1], [2]);
  expect(first).toMatchObject({ status: 'rejected', reason: { code: '23505' } });
  expect(second).toMatchObject({ status: 'rejected', reason: unavailable });
  expect(await stored()).toEqual([]);
  expect(db.pool.idleCount).toBe(db.pool.totalCount);
});

it('fails alone', async () => {
  const [first, second] = await twoOf([1], [2, 2]);
  expect(first.status).toBe('fulfilled');
  expect(second).toMatchObject({ status: 'rejected', reason: { code: '23505' } });
  expect(await stored()).toEqual([1]);
});

it.each([
  ['goes on', [1], 'fulfilled', [1, 2]],
  ['fails', [1, 1], 'rejected', []],
])('behind one that is long over, %s as that one did', async (_name, first, status, left) => {
  let behind: Committing | undefined;
  const onCommitting = (committing: Committing) => (behind = committing);
  await db.transaction((tx) => add(tx, ...first), { onCommitting }).catch(() => undefined);
  const [second] = await Promise.allSettled([db.transaction((tx) => add(tx, 2), { behind })]);
  expect(second.status).toBe(status);
  expect(await stored()).toEqual(left);
});
