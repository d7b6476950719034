import { afterAll, beforeAll, expect, test } from 'vitest';
import { readDatabaseTime, writeBelief } from '../../src/clock/believed-time.ts';
import type { SharedBelief } from '../../src/clock/belief.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.drop());

const believed = (reckonedTs: number): SharedBelief => ({ reckonedTs, doubtedTs: null });
const doubted = (reckonedTs: number, doubtedTs: number): SharedBelief => ({
  reckonedTs,
  doubtedTs,
});

test.each<{
  name: string;
  before: SharedBelief | null;
  kind: 'doubt' | 'believe' | 'advance';
  write: SharedBelief;
  after: SharedBelief;
}>([
  { name: 'the first', before: null, kind: 'advance', write: believed(10), after: believed(10) },
  {
    name: 'a first doubt',
    before: null,
    kind: 'doubt',
    write: doubted(10, 5),
    after: doubted(10, 5),
  },
  {
    name: 'time goes on',
    before: believed(10),
    kind: 'advance',
    write: believed(20),
    after: believed(20),
  },
  {
    name: 'time never goes back',
    before: believed(20),
    kind: 'advance',
    write: believed(10),
    after: believed(20),
  },
  {
    name: 'a doubt',
    before: believed(20),
    kind: 'doubt',
    write: doubted(25, 25),
    after: doubted(20, 25),
  },
  {
    name: 'a second doubt',
    before: doubted(20, 25),
    kind: 'doubt',
    write: doubted(30, 30),
    after: doubted(20, 25),
  },
  {
    name: 'time in doubt',
    before: doubted(20, 25),
    kind: 'advance',
    write: doubted(90, 25),
    after: doubted(90, 25),
  },
  {
    name: 'one that still believes',
    before: doubted(20, 25),
    kind: 'advance',
    write: believed(90),
    after: doubted(20, 25),
  },
  {
    name: 'one that still doubts',
    before: believed(20),
    kind: 'advance',
    write: doubted(90, 25),
    after: believed(20),
  },
  {
    name: 'the end of a doubt',
    before: doubted(90, 25),
    kind: 'believe',
    write: believed(30),
    after: believed(30),
  },
])('$name', async ({ before, kind, write, after }) => {
  const { db } = database;
  await db.query('delete from believed_time');
  if (before !== null)
    await db.query(
      `insert into believed_time (reckoned_at, doubted_at)
       values (ms_to_timestamp($1), ms_to_timestamp($2))`,
      [before.reckonedTs, before.doubtedTs],
    );
  await writeBelief(db, { kind, shared: write });
  expect((await readDatabaseTime(db)).shared).toEqual(after);
});

test('there is one row', async () => {
  const { db } = database;
  const insert = () => db.query('insert into believed_time (reckoned_at) values (now())');
  await db.query('delete from believed_time');
  await insert();
  await expect(insert()).rejects.toThrow('believed_time_pkey');
});
