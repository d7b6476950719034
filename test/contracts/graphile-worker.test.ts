import { afterAll, beforeAll, expect, test } from 'vitest';
import { addJobs, freeAbandonedJobs, jobSchema, jobSpec, jobTable } from '../../src/db/jobs.ts';
import { migrateWorker } from '../../src/notifications/old-jobs.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
const silent = { debug() {}, info() {}, warn() {}, error() {} };
beforeAll(async () => {
  database = await testDatabase();
  await migrateWorker(database.url, silent);
});
afterAll(() => database.drop());

const spec = (key?: string) =>
  jobSpec({ task: '$1', payload: `json_build_object('n', n)`, maxRuns: '$2', ...(key && { key }) });
const add = (numbers: number[], key?: string) =>
  database.db.query(
    `with due as (select array_agg(${spec(key)} order by n) as specs from unnest($3::int[]) as n)
     select count(*) from due cross join lateral ${addJobs}(due.specs)`,
    ['a-task', 7, numbers],
  );

test('the fields of a job are those that are written, in this order', async () => {
  const { rows } = await database.db.query<{ attname: string }>(
    `select attname from pg_attribute
      where attrelid = '${jobSchema}.job_spec'::regclass and attnum > 0 order by attnum`,
  );
  expect(rows.map(({ attname }) => attname)).toEqual([
    'identifier',
    'payload',
    'queue_name',
    'run_at',
    'max_attempts',
    'job_key',
    'priority',
    'flags',
  ]);
});

test('jobs are added with what they were made of, and wait to be run at once', async () => {
  await add([1, 2]);
  const { rows } = await database.db.query(
    `select job.task_identifier as task, private.payload, job.max_attempts as runs,
            job.run_at <= now() as due
       from ${jobSchema}.jobs as job join ${jobSchema}.${jobTable} as private using (id) order by id`,
  );
  const job = { task: 'a-task', runs: 7, due: true };
  expect(rows).toEqual([
    { ...job, payload: { n: 1 } },
    { ...job, payload: { n: 2 } },
  ]);
});

test('a job of the same key takes the place of one that waits', async () => {
  await database.db.query(`delete from ${jobSchema}.${jobTable}`);
  await add([1, 2], `'key ' || n`);
  await add([2, 3], `'key ' || n`);
  const { rows } = await database.db.query<{ key: string }>(
    `select key from ${jobSchema}.jobs order by key`,
  );
  expect(rows.map(({ key }) => key)).toEqual(['key 1', 'key 2', 'key 3']);
});

test('jobs whose worker is gone are free again, and those of others are not', async () => {
  await database.db.query(`delete from ${jobSchema}.${jobTable}`);
  await add([1, 2]);
  await database.db.query(
    `update ${jobSchema}.${jobTable}
        set locked_by = case payload ->> 'n' when '1' then 'gone' else 'here' end,
            locked_at = case payload ->> 'n' when '1' then now() - interval '1 hour' else now() end`,
  );
  await freeAbandonedJobs(database.db, 60_000);
  const { rows } = await database.db.query<{ lockedBy: string | null }>(
    `select locked_by as "lockedBy" from ${jobSchema}.jobs order by id`,
  );
  expect(rows.map(({ lockedBy }) => lockedBy)).toEqual([null, 'here']);
});
