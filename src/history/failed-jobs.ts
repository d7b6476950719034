import type { Sql } from '../db/sql.ts';
import { readHistoryKind } from './kind.ts';

/** What a job of TimescaleDB's should have compressed, and has not. */
export type FailedJob = {
  jobId: number;
  /** What it does, by TimescaleDB's name. */
  does: string;
  relation: string;
  /** Chunks that are due for more than a day. */
  chunks: number;
  /** Until when the oldest of them reaches, ms. */
  oldestTs: number;
  /** The last error message; null where TimescaleDB has not kept one. */
  error: string | null;
};

/**
 * The jobs that have not done what they are there for, judged by what is left undone: their own status says "failed" also
 * of runs that did it all (TimescaleDB with PostgreSQL 15.20), and the first sign of a real failure would be a full disk.
 */
export async function listFailedJobs(sql: Sql): Promise<FailedJob[]> {
  if ((await readHistoryKind(sql)) === 'plain') return [];
  const { rows } = await sql.query<FailedJob>(
    `select j.job_id as "jobId",
            j.proc_name as does,
            j.hypertable_name as relation,
            count(*)::integer as chunks,
            min(c.range_end) as "oldestTs",
            (select e.err_message
               from timescaledb_information.job_errors e
              where e.job_id = j.job_id
              order by e.finish_time desc
              limit 1) as error
       from timescaledb_information.jobs j
       join timescaledb_information.chunks c
         on c.hypertable_schema = j.hypertable_schema and c.hypertable_name = j.hypertable_name
      where j.hypertable_schema = current_schema
        and j.config ? 'compress_after'
        and not c.is_compressed
        and c.range_end < now() - (j.config ->> 'compress_after')::interval - interval '1 day'
      group by j.job_id, j.proc_name, j.hypertable_name
      order by j.job_id`,
  );
  return rows;
}
