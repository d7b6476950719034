import type { Database } from '../db/database.ts';
import { listFailedJobs, type FailedJob } from './failed-jobs.ts';
import { pruneHistory } from './prune.ts';
import type { Retention } from './retention.ts';

export type UpkeepOptions = {
  db: Database;
  retention: Retention;
  /** Time between two runs; one hour if absent. */
  intervalMs?: number;
  clock: () => number;
  onError: (error: unknown) => void;
  /** Called after each run while jobs fail. */
  onFailedJobs: (jobs: FailedJob[]) => void;
  /** Other jobs to run at the same interval. */
  chores?: ((signal: AbortSignal) => Promise<void>)[];
};

/**
 * Prunes periodically, and checks TimescaleDB's own jobs. An error is reported and the work tried again
 * at the next run. Returns what stops it.
 */
export function startUpkeep(options: UpkeepOptions): () => Promise<void> {
  const { db, retention, intervalMs = 3_600_000, clock } = options;
  const stopping = new AbortController();
  let running = Promise.resolve();
  async function work(): Promise<void> {
    await pruneHistory(db, { retention, nowTs: clock(), signal: stopping.signal });
    for (const chore of options.chores ?? []) await chore(stopping.signal);
    const failed = await listFailedJobs(db);
    if (failed.length > 0) options.onFailedJobs(failed);
  }
  const run = () => void (running = running.then(work).catch(options.onError));
  const timer = setInterval(run, intervalMs);
  run();
  return async () => {
    clearInterval(timer);
    stopping.abort();
    await running;
  };
}
