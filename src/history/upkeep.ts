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
 * Prunes now and every hour, does the other chores, and checks TimescaleDB's own jobs. What fails is
 * reported, stops nothing else, and is tried again the next time. Returns what stops it.
 */
export function startUpkeep(options: UpkeepOptions): () => Promise<void> {
  const { db, retention, intervalMs = 3_600_000, clock, onError } = options;
  const stopping = new AbortController();
  let running = Promise.resolve();
  async function tellFailedJobs(): Promise<void> {
    const failed = await listFailedJobs(db);
    if (failed.length > 0) options.onFailedJobs(failed);
  }
  async function work(): Promise<void> {
    const { signal } = stopping;
    await pruneHistory(db, { retention, nowTs: clock(), signal }).catch(onError);
    for (const chore of options.chores ?? [])
      if (!signal.aborted) await chore(signal).catch(onError);
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
