import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { pruneHistory, readHistoryKind, type Retention } from './retention.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Deletes what has expired. `nowTs`: the trusted time, ms. `kept`: the retention in force. */
export type Chore = (
  nowTs: WallMs,
  { kept, signal }: { kept: Retention; signal: AbortSignal },
) => Promise<void>;

type UpkeepOptions = {
  db: Database;
  /** Reconciles the retention with the configuration, and returns what is in force. */
  settleRetention: () => Promise<Retention>;
  /** Time between two runs; one hour if absent. */
  intervalMs?: number;
  /** The time by which things may be deleted, ms; null while the clock is in doubt. */
  believedTs: () => WallMs | null;
  onError: (error: unknown) => void;
  /** Called after each run with the jobs that fail; the list may be empty. */
  onFailedJobs: (jobs: FailedJob[]) => void;
  /** Called after each run in which nothing was deleted because the clock is in doubt. */
  onDoubt: () => void;
  /** Other chores at the same interval that delete by time. */
  chores?: Chore[];
  /** Chores that do not depend on the time. */
  timelessChores?: ((signal: AbortSignal) => Promise<void>)[];
};

/**
 * Prunes now and every hour, runs the other chores, and checks TimescaleDB's own jobs. While the clock is in doubt,
 * nothing is deleted by time. A failure is reported, stops nothing else, and is tried again in the next run. Returns
 * a function that stops it.
 */
export function startUpkeep(options: UpkeepOptions): () => Promise<void> {
  const { db, intervalMs = 3_600_000, believedTs, onError } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  let running = Promise.resolve();
  async function tellFailedJobs(): Promise<void> {
    options.onFailedJobs(await listFailedJobs(db));
  }
  const prune: Chore = async (nowTs, { kept }) => {
    await pruneHistory(db, { retention: kept, nowTs, signal });
  };
  function noRetention(error: unknown): null {
    onError(error);
    return null;
  }
  async function deleteOld(kept: Retention): Promise<void> {
    for (const chore of [prune, ...(options.chores ?? [])]) {
      // Asked each time, because a chore may take long.
      const nowTs = believedTs();
      if (!signal.aborted && nowTs !== null) await chore(nowTs, { kept, signal }).catch(onError);
    }
  }
  async function work(): Promise<void> {
    for (const chore of options.timelessChores ?? [])
      if (!signal.aborted) await chore(signal).catch(onError);
    const kept = await options.settleRetention().catch(noRetention);
    if (kept !== null) await deleteOld(kept);
    if (believedTs() === null) options.onDoubt();
    if (!signal.aborted) await tellFailedJobs().catch(onError);
  }
  const run = () => void (running = running.then(work));
  const timer = setInterval(run, intervalMs);
  run();
  return async () => {
    clearInterval(timer);
    stopping.abort();
    await running;
  };
}

/** What a TimescaleDB job should have compressed and has not. */
export type FailedJob = {
  jobId: number;
  /** What it does, by TimescaleDB's name. */
  does: string;
  relation: string;
  /** Chunks that have been due for more than a day. */
  chunks: number;
  /** The end of the oldest of them, ms. */
  oldestTs: number;
  /** The last error message; null if TimescaleDB has not kept one. */
  error: string | null;
};

/**
 * Lists jobs that have not done their work, judged by what is left undone. Their own status is no guide: it also says
 * "failed" of runs that did everything (TimescaleDB with PostgreSQL 15.20). Otherwise the first sign would be a full
 * disk.
 */
async function listFailedJobs(sql: Sql): Promise<FailedJob[]> {
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
