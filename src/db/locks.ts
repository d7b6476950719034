import { pause } from '../lib/wait.ts';
import { kindOf } from './errors.ts';
import type { Sql } from './sql.ts';

/**
 * The advisory lock between ingest and removals: every ingest transaction holds it shared before it looks whether
 * its devices and accounts are there; a removal takes it exclusively for the moment in which it marks what it
 * removes (`haltIngest`). What is stored afterwards cannot belong to a removed device.
 */
export const ingestLock = 7201;

/** Held by the process that clears what removals left behind: one at a time does. */
export const purgeLock = 7206;

/** Held by the process that does some devices of a job. */
export const jobsLock = 7212;

/**
 * How long a removal waits for the ingest lock, and for rows while it has it, in ms; one after another. While it
 * waits ingest waits behind it, so it gives way soon, and waits longer only where it came to nothing before.
 */
const haltWaitsMs = [50, 50, 50, 50, 100, 100, 200, 200, 400, 400, 800, 800] as const;
const restMs = 30;

/**
 * Keeps every ingest transaction from beginning to write until this transaction ends. Rows that are changed from here
 * on are waited for no longer than `waitMs`: then the statement fails, as `cancelled`.
 */
export async function haltIngest(tx: Sql, waitMs: number): Promise<void> {
  // Before the statement that waits: a setting counts from the next one on.
  await tx.query(`select set_config('lock_timeout', $1, true)`, [`${waitMs}ms`]);
  await tx.query('select pg_advisory_xact_lock($1)', [ingestLock]);
}

/**
 * Runs work that halts ingest, again where it had to give way: a transaction, or what ends with `rollback to
 * savepoint`. It is handed the time for `haltIngest`. Rejects as the last one did.
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
