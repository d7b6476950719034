import { pause } from '../lib/wait.ts';
import { kindOf } from './errors.ts';
import type { Sql } from './sql.ts';

/**
 * The advisory lock between ingest and removals. Every ingest transaction takes it shared before it checks that its
 * devices and accounts exist. A removal takes it exclusively for the moment in which it marks what it removes
 * (`haltIngest`). So nothing that is stored afterwards can belong to a removed device.
 */
export const ingestLock = 7201;

/** Held by the one process that deletes what removals left behind. */
export const purgeLock = 7206;

/** Held by the process that works on some devices of a job. */
export const jobsLock = 7212;

/** Held for a moment by the process that takes up a backtest. */
export const backtestsLock = 7213;

/**
 * How long each attempt of a removal waits for the ingest lock, and for rows while it has the lock, in ms. Ingest
 * queues behind that wait, so a removal gives up soon, and waits longer only after failed attempts.
 */
const haltWaitsMs = [50, 50, 50, 50, 100, 100, 200, 200, 400, 400, 800, 800] as const;
const restMs = 30;

/**
 * Keeps every ingest transaction from starting to write until this transaction ends. Later statements wait at most
 * `waitMs` for rows, then fail as `cancelled`.
 */
export async function haltIngest(tx: Sql, waitMs: number): Promise<void> {
  // Set first, because a setting applies from the next statement on.
  await tx.query(`select set_config('lock_timeout', $1, true)`, [`${waitMs}ms`]);
  await tx.query('select pg_advisory_xact_lock($1)', [ingestLock]);
}

/** Statements of `work` wait at most `waitMs` for each lock, then fail as `cancelled`. */
export async function withinLockTime(
  tx: Sql,
  waitMs: number,
  work: () => Promise<void>,
): Promise<void> {
  const set = `select current_setting('lock_timeout') as before, set_config('lock_timeout', $1, true)`;
  const { rows } = await tx.query<{ before: string }>(set, [`${waitMs}ms`]);
  await work();
  await tx.query(set, [rows[0]?.before ?? '0']);
}

/**
 * Runs work that halts ingest, and runs it again if it timed out: a transaction, or work that ends with `rollback to
 * savepoint`. Passes it the time for `haltIngest`. Rejects with the error of the last attempt.
 */
export async function giveWay<T>(work: (waitMs: number) => Promise<T>): Promise<T> {
  for (const waitMs of haltWaitsMs) {
    try {
      return await work(waitMs);
    } catch (error) {
      if (!['cancelled', 'serialization'].includes(kindOf(error))) throw error;
      await pause(restMs, new AbortController().signal);
    }
  }
  return work(haltWaitsMs.at(-1) ?? 0);
}
