import type { Database } from '../database.ts';
import { pruneHistory } from './prune.ts';
import type { Retention } from './retention.ts';

export type PruningOptions = {
  db: Database;
  retention: Retention;
  /** How often; an hour. */
  intervalMs?: number;
  clock?: () => number;
  onError: (error: unknown) => void;
};

/** Prunes now and then; a fault is told and tried again the next time. Gives what stops it. */
export function startPruning(options: PruningOptions): () => Promise<void> {
  const { db, retention, intervalMs = 3_600_000, clock = Date.now, onError } = options;
  const stopping = new AbortController();
  let running = Promise.resolve();
  const run = () => {
    const work = () =>
      pruneHistory(db, { retention, nowTs: clock(), signal: stopping.signal }).then(
        () => undefined,
      );
    running = running.then(work).catch(onError);
  };
  const timer = setInterval(run, intervalMs);
  run();
  return async () => {
    clearInterval(timer);
    stopping.abort();
    await running;
  };
}
