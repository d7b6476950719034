import type { Sql } from '../db/sql.ts';
import { readHistoryKind } from './kind.ts';

/** A job of TimescaleDB's (retention, columnstore, aggregate) whose last run failed. */
export type FailedJob = {
  jobId: number;
  /** What it does, by TimescaleDB's name. */
  does: string;
  relation: string;
  /** The error message; null where TimescaleDB has not kept it. */
  error: string | null;
  /** Time of the last successful run, ms; null for never. */
  succeededTs: number | null;
};

/** The failed jobs on the history. TimescaleDB reports them nowhere else: the first sign is a full disk. */
export async function listFailedJobs(sql: Sql): Promise<FailedJob[]> {
  if ((await readHistoryKind(sql)) === 'plain') return [];
  const { rows } = await sql.query<FailedJob>(
    `select j.job_id as "jobId",
            j.proc_name as does,
            j.hypertable_name as relation,
            (select e.err_message
               from timescaledb_information.job_errors e
              where e.job_id = j.job_id
              order by e.finish_time desc
              limit 1) as error,
            nullif(s.last_successful_finish, '-infinity') as "succeededTs"
       from timescaledb_information.jobs j
       join timescaledb_information.job_stats s on s.job_id = j.job_id
      where j.hypertable_schema = current_schema and s.last_run_status = 'Failed'
      order by j.job_id`,
  );
  return rows;
}
