import type { Sql } from './sql.ts';

/** Where graphile-worker keeps its jobs. Role security is looked for on the table behind its view. */
export const jobSchema = 'graphile_worker';
export const jobTable = '_private_jobs';

/** What a job is made of, each as SQL. */
export type JobSql = {
  task: string;
  /** JSON. */
  payload: string;
  maxRuns: string;
  /** A second job of the same key takes the place of the first, while that waits. */
  key?: string;
};

/** A job as `addJobs` takes it: the fields of the library's type, in their order. */
export function jobSpec({ task, payload, maxRuns, key = 'null' }: JobSql): string {
  return `row(${task}::text, ${payload}, null, null, ${maxRuns}::smallint, ${key}, null, null)::${jobSchema}.job_spec`;
}

/**
 * The function that adds an array of `jobSpec`, inside the caller's own statement and transaction: a job for
 * each row that is written costs no round trip of its own.
 */
export const addJobs = `${jobSchema}.add_jobs`;

/**
 * Frees the jobs of processes that ended while they held them: a job never takes as long as
 * `olderThanMs`, so its worker is gone.
 */
export async function freeAbandonedJobs(sql: Sql, olderThanMs: number): Promise<void> {
  await sql.query(
    `select ${jobSchema}.force_unlock_workers(array(
       select distinct locked_by from ${jobSchema}.jobs
        where locked_at < now() - $1 * interval '1 millisecond'
     ))`,
    [olderThanMs],
  );
}
