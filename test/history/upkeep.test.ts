import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { type FailedJob, startUpkeep } from '../../src/history/upkeep.ts';
import { migrate } from '../../src/db/migrate.ts';
import { findTimescaleBinDir, startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { openTestDatabase, testDatabase } from '../support/database.ts';

const retention = { eventsDays: 365, measurementsDays: 90 };

/** Callbacks for a test that is about something else. */
const silent = {
  settleRetention: async () => retention,
  onError: () => undefined,
  onFailedJobs: () => undefined,
  onDoubt: () => undefined,
};

/** What the first run of an upkeep says of the jobs that fail. */
async function findFailedJobs(db: Database): Promise<FailedJob[]> {
  const said = Promise.withResolvers<FailedJob[]>();
  const { resolve: onFailedJobs, reject: onError } = said;
  const stop = startUpkeep({ ...silent, db, believedTs: () => null, onFailedJobs, onError });
  try {
    return await said.promise;
  } finally {
    await stop();
  }
}

describe.skipIf(findTimescaleBinDir() === null)('jobs of TimescaleDB', () => {
  let cluster: Cluster;
  let db: Database;
  beforeAll(async () => {
    cluster = await startThrowAwayCluster({ timescaledb: true });
    await migrate(cluster.url(), { log: { info() {}, warn() {} } });
    db = openTestDatabase(cluster.url());
  });
  afterAll(async () => {
    await db?.close();
    await cluster?.remove();
  });

  test('delete nothing by a clock of their own', async () => {
    // An expired day, which a view of the operator's own depends on.
    await db.query(
      `insert into measurement (series_id, ts, val) values (1, now() - interval '100 days', 1)`,
    );
    const { rows: chunks } = await db.query<{ chunk: string }>(
      `select show_chunks('measurement')::text as chunk`,
    );
    await db.query(`create view old_days as select from ${chunks[0]?.chunk}`);
    const jobs = async () => {
      const { rows } = await db.query<{ jobId: number }>(
        `select job_id as "jobId"
           from timescaledb_information.jobs
          where proc_name = 'policy_retention'`,
      );
      return rows;
    };
    expect(await jobs()).toEqual([]);
    // An earlier version that starts beside this one creates it.
    await db.query(`select add_retention_policy('measurement', drop_after => interval '90 days')`);
    expect(await jobs()).toHaveLength(1);

    const onError = vi.fn<(error: unknown) => void>();
    const stop = startUpkeep({
      ...silent,
      db,
      believedTs: Date.now,
      onError,
      intervalMs: 50,
    });
    // What prevents a chunk from being dropped is reported each time.
    await expect.poll(() => onError.mock.calls.length).toBeGreaterThan(1);
    await stop();
    expect(onError.mock.calls[0]?.[0]).toMatchObject({
      detail: expect.stringContaining('old_days'),
    });
    expect(await jobs()).toEqual([]);
    expect(chunks).toHaveLength(1);
    await db.query('drop view old_days');
    const again = startUpkeep({ ...silent, db, believedTs: Date.now, intervalMs: 50 });
    const left = () => db.query(`select show_chunks('measurement')`);
    await expect.poll(async () => (await left()).rowCount).toBe(0);
    await again();
  });

  test('have failed if something is not compressed, whatever their status says', async () => {
    const insert = (days: number) =>
      db.query(`insert into measurement (series_id, ts, val) values (1, now() - $1::interval, 1)`, [
        `${days} days`,
      ]);
    await Promise.all([insert(1), insert(3)]);
    // Due for less than a day, or not at all.
    expect(await findFailedJobs(db)).toEqual([]);
    await Promise.all([insert(10), insert(20)]);
    const failed = {
      does: 'policy_compression',
      relation: 'measurement',
      chunks: 2,
      jobId: expect.any(Number) as unknown,
      oldestTs: expect.any(Number) as unknown,
      error: null,
    };
    expect(await findFailedJobs(db)).toEqual([failed]);

    const onFailedJobs = vi.fn<(jobs: FailedJob[]) => void>();
    const stop = startUpkeep({
      ...silent,
      db,
      believedTs: () => null,
      onFailedJobs,
      intervalMs: 50,
    });
    // At once, and again.
    await expect.poll(() => onFailedJobs.mock.calls.length).toBeGreaterThan(1);
    expect(onFailedJobs).toHaveBeenCalledWith([failed]);
    await db.query(
      `select compress_chunk(c) from show_chunks('measurement', older_than => interval '4 days') c`,
    );
    await expect.poll(() => onFailedJobs.mock.lastCall).toEqual([[]]);
    await stop();
  });
});

test('ordinary tables have no jobs that could fail', async () => {
  const { db, drop } = await testDatabase('postgresql');
  expect(await findFailedJobs(db)).toEqual([]);
  await drop();
});

test('in doubt nothing is deleted by time alone, and this is reported; the other chores run', async () => {
  const { db, drop } = await testDatabase('postgresql');
  await db.query(
    `insert into measurement (series_id, ts, val) values (1, now() - interval '100 days', 1)`,
  );
  const count = async () =>
    (await db.query<{ n: number }>('select count(*)::integer as n from measurement')).rows[0]?.n;
  let believedTs: number | null = null;
  const chore = vi.fn<() => Promise<void>>(async () => undefined);
  const timeless = vi.fn<() => Promise<void>>(async () => undefined);
  const onDoubt = vi.fn<() => void>();
  const stop = startUpkeep({
    ...silent,
    db,
    believedTs: () => believedTs,
    onDoubt,
    chores: [chore],
    timelessChores: [timeless],
    intervalMs: 20,
  });
  await expect.poll(() => onDoubt.mock.calls.length).toBeGreaterThan(2);
  expect(await count()).toBe(1);
  expect(chore).not.toHaveBeenCalled();
  expect(timeless).toHaveBeenCalled();
  believedTs = Date.now();
  await expect.poll(count).toBe(0);
  await expect.poll(() => chore.mock.calls.length).toBeGreaterThan(0);
  await stop();
  await drop();
});
