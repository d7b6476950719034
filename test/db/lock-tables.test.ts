import { afterEach, beforeEach, expect, it } from 'vitest';
import { withTablesLocked } from '../../src/db/migrate.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { openClient, schema } from '../support/template.ts';

const tables = [`${schema}.account`, `${schema}.device`];

let database: TestDatabase;
let holder: ReturnType<typeof openClient>;
let mover: ReturnType<typeof openClient>;
let told: string[];
beforeEach(async () => {
  database = await testDatabase();
  told = [];
  [holder, mover] = [openClient(database.url), openClient(database.url)];
  holder.on('error', () => undefined);
  await Promise.all([holder.connect(), mover.connect()]);
  await holder.query('begin');
  await holder.query(`insert into account (email, password_hash) values ('a@b.example', 'x')`);
});
afterEach(async () => {
  await Promise.all([holder.end().catch(() => undefined), mover.end()]);
  await database.drop();
});

const log = { warn: (_: object, line: string) => void told.push(line) };
const count = async () => {
  const { rows } = await mover.query<{ n: number }>('select count(*)::integer as n from account');
  return rows[0]?.n;
};

it('waits for transactions under way, which commit first', async () => {
  let seen: number | undefined;
  const work = async () => void (seen = await count());
  const moved = withTablesLocked(mover, tables, work, { log, patienceMs: 60_000 });
  await holder.query('commit');
  await moved;
  expect(seen).toBe(1);
  expect(told).toEqual([]);
});

it('ends sessions that hold locks for too long, and names them', async () => {
  let seen: number | undefined;
  const work = async () => void (seen = await count());
  await withTablesLocked(mover, tables, work, { log, patienceMs: 0 });
  expect(seen).toBe(0);
  expect(told).toHaveLength(1);
  expect(told[0]).toMatch(/held the tables for too long: \d+ \(.*idle in transaction\)/);
  await expect(holder.query('commit')).rejects.toThrow(/terminated|connection error/);
});

it('leaves nothing behind when the work fails', async () => {
  await holder.query('rollback');
  const work = async () => {
    await mover.query('delete from account');
    throw new Error('no');
  };
  await expect(withTablesLocked(mover, tables, work, { log })).rejects.toThrow('no');
  await holder.query(`insert into account (email, password_hash) values ('c@d.example', 'x')`);
  expect(await count()).toBe(1);
});

it('names the sessions that it may not end', async () => {
  await mover.query(`create role mover; grant usage on schema ${schema} to mover`);
  await mover.query(`grant all on all tables in schema ${schema} to mover; set role mover`);
  const moving = withTablesLocked(mover, tables, async () => {}, { log, patienceMs: 0 });
  await expect(moving).rejects.toThrow(/because \d+ .*hold locks on them\. End these sessions/);
  await mover.query(`reset role; drop owned by mover; drop role mover`);
});
