import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { listFailedJobs, type FailedJob } from '../../src/history/failed-jobs.ts';
import { applyRetention } from '../../src/history/retention.ts';
import { startUpkeep } from '../../src/history/upkeep.ts';
import { migrate } from '../../src/db/migrate.ts';
import { findTimescaleBinDir, startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { openTestDatabase, testDatabase } from '../support/database.ts';

const retention = { eventsDays: 365, measurementsDays: 90 };

describe.skipIf(findTimescaleBinDir() === null)('jobs of TimescaleDB', () => {
  let cluster: Cluster;
  let db: Database;
  beforeAll(async () => {
    const settings = ['timescaledb.max_background_workers=8'];
    cluster = await startThrowAwayCluster({ timescaledb: true, settings });
    await migrate(cluster.url(), { log: { info() {}, warn() {} } });
    db = openTestDatabase(cluster.url());
  });
  afterAll(async () => {
    await db?.close();
    await cluster?.remove();
  });

  test('are told of when their last run failed, with the reason', async () => {
    // A day that is past its time, and that a view of the operator's own holds on to.
    await db.query(
      `insert into measurement (series_id, ts, val) values (1, now() - interval '100 days', 1)`,
    );
    const { rows: chunks } = await db.query<{ chunk: string }>(
      `select show_chunks('measurement')::text as chunk`,
    );
    await db.query(`create view old_days as select from ${chunks[0]?.chunk}`);
    await applyRetention(db, retention);
    const { rows: jobs } = await db.query<{ jobId: number }>(
      `select job_id as "jobId"
         from timescaledb_information.jobs
        where proc_name = 'policy_retention' and hypertable_name = 'measurement'`,
    );
    const [job] = jobs;
    // The other ones run for the first time meanwhile, and a deadlock with one is a failure too.
    const runAndList = async () => {
      await db.query('select alter_job($1, next_start => now())', [job?.jobId]);
      return listFailedJobs(db);
    };
    const failed = {
      jobId: job?.jobId,
      does: 'policy_retention',
      relation: 'measurement',
      error: expect.stringContaining('old_days'),
      succeededTs: null,
    };
    await expect.poll(runAndList, { timeout: 45_000, interval: 1_000 }).toContainEqual(failed);

    const onFailedJobs = vi.fn<(jobs: FailedJob[]) => void>();
    const onError = vi.fn<(error: unknown) => void>();
    const stop = startUpkeep({
      db,
      retention,
      clock: Date.now,
      onError,
      onFailedJobs,
      intervalMs: 50,
    });
    // At once, and again.
    await expect.poll(() => onFailedJobs.mock.calls.length).toBeGreaterThan(1);
    await stop();
    expect(onFailedJobs.mock.calls[0]?.[0]).toContainEqual(failed);
    expect(onError).not.toHaveBeenCalled();
  });
});

test('ordinary tables have no jobs that could fail', async () => {
  const { db, drop } = await testDatabase('postgresql');
  expect(await listFailedJobs(db)).toEqual([]);
  await drop();
});
