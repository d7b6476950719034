import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CopyRows } from '../../src/db/database.ts';
import { beginPipelined, breakOff, copyIn } from '../../src/db/pg-driver.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let pool: pg.Pool;
let client: pg.PoolClient;
beforeAll(async () => {
  database = await testDatabase();
  await database.db.query('create table public.item (n bigint primary key)');
  pool = new pg.Pool({ connectionString: database.url, max: 1, pipeline: true });
  client = await pool.connect();
});
afterAll(async () => {
  client.release(true);
  await pool.end();
  await database.drop();
});

const rowOf = (n: number) => new CopyRows().row(1).bigint(n).end();
const copy = 'copy item from stdin (format binary)';
const count = () => client.query<{ count: string }>('select count(*) from item');
const streamOf = (one: unknown) => (one as pg.Client).connection.stream;

test('a pool passes its pipelining on to its clients', () => {
  expect(client.pipeline).toBe(true);
});

test('what begins with a transaction is sent in one piece, and answered in order', async () => {
  const stream = streamOf(client);
  const begun = beginPipelined(client);
  const all = [count(), copyIn(client, copy, rowOf(1)), count(), copyIn(client, copy, rowOf(2))];
  const last = count();
  expect([stream.writableCorked, stream.writableLength > 0]).toEqual([1, true]);
  await begun;
  expect(stream.writableCorked).toBe(0);
  const counts = [...(await Promise.all(all)), await last].flatMap(
    (one) => one?.rows[0]?.count ?? [],
  );
  expect(counts).toEqual(['0', '1', '2']);
  await client.query('rollback');
  expect((await count()).rows[0]?.count).toBe('0');
});

test('a COPY that is refused discards its rows, and the connection continues', async () => {
  const refused = copyIn(client, 'copy nowhere from stdin (format binary)', rowOf(1));
  const after = count();
  await expect(refused).rejects.toMatchObject({ code: '42P01' });
  expect((await after).rows[0]?.count).toBe('0');
});

test('a connection that breaks fails the queries in progress', async () => {
  const one = new pg.Client({ connectionString: database.url });
  one.on('error', () => undefined);
  await one.connect();
  const waiting = one.query('select pg_sleep(60)').catch((error: Error) => error.message);
  breakOff(one);
  expect(await waiting).toBe('Connection terminated unexpectedly');
});

test('a notice names its function, and a connection error fails the queries in progress', async () => {
  const one = new pg.Client({ connectionString: database.url });
  one.on('error', () => undefined);
  await one.connect();
  const named = new Promise((resolve) => one.once('notice', ({ routine }) => resolve(routine)));
  await one.query(`do $$ begin raise warning 'said'; end $$`);
  expect(await named).toBe('exec_stmt_raise');
  one.once('notice', () => one.connection.emit('error', new Error('given up')));
  const [first, second] = await Promise.allSettled([
    one.query(`do $$ begin raise warning 'said'; end $$`),
    one.query('select 1'),
  ]);
  for (const each of [first, second])
    expect(each).toMatchObject({ status: 'rejected', reason: { message: 'given up' } });
  await one.end();
});
