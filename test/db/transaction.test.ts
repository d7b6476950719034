import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Committing, Database, Transaction } from '../../src/db/database.ts';
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

/** Runs a transaction and another that begins behind its commit. Returns how both end. */
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

// Once per process the driver warns that it will no longer queue statements of callers that do not wait.
const warnings: string[] = [];
process.on('warning', ({ message }) => warnings.push(message));

describe.each([{ pipeline: true }, { pipeline: false }])('its error, with %o', ({ pipeline }) => {
  let own: Database;
  beforeAll(() => {
    own = openTestDatabase(database.url, { pipeline, maxConnections: 1 });
  });
  afterAll(() => own.close());

  const divide = (tx: Transaction) => tx.query('select 1 / 0');
  const divided = { code: '22012' };

  it('is the one that ended the transaction, even if the work sees the errors of later statements first', async () => {
    const answered: unknown[] = [];
    const working = own.transaction(async (tx) => {
      const first = divide(tx).catch((error: unknown) => {
        answered.push(error);
        return second.then(() => Promise.reject(error));
      });
      const second = tx.query('select 1').catch((error: unknown) => {
        answered.push(error);
        throw error;
      });
      await Promise.all([second, first]);
    });
    await expect(working).rejects.toMatchObject(divided);
    expect(answered).toMatchObject([divided, { code: '25P02' }]);
  });

  it('is the one that ended the transaction, even if the work went on after it', async () => {
    const ignored = own.transaction(async (tx) => {
      await divide(tx).catch(() => undefined);
      return 'stored';
    });
    await expect(ignored).rejects.toMatchObject(divided);
  });

  it('is not one from which the work recovered', async () => {
    const working = own.transaction(async (tx) => {
      await tx.query('savepoint before');
      await divide(tx).catch(() => undefined);
      await tx.query('rollback to savepoint before');
      await tx.query(`select 'x'::integer`).catch(() => undefined);
      await tx.query('select 1');
    });
    await expect(working).rejects.toMatchObject({ code: '22P02' });
  });

  it('ends all of the work: whatever goes on afterwards writes nothing', async () => {
    const { promise: isOver, resolve: over } = Promise.withResolvers<void>();
    let late: Promise<unknown> | undefined;
    const working = own.transaction((tx) => {
      late = isOver.then(() => add(tx, 1));
      return Promise.all([divide(tx), late]);
    });
    await expect(working).rejects.toMatchObject(divided);
    over();
    await expect(late).rejects.toThrow('after its transaction had ended');
    expect(await stored()).toEqual([]);
  });

  it('does not occur with statements sent without waiting; they run in order', async () => {
    const numbers = await own.transaction((tx) =>
      Promise.all([1, 2, 3].map((n) => tx.query<{ n: number }>('select $1::integer as n', [n]))),
    );
    expect(numbers.map(({ rows }) => rows[0]?.n)).toEqual([1, 2, 3]);
    expect(warnings.filter((text) => text.includes('client.query()'))).toEqual([]);
  });
});
