import type { Sql } from '../db/sql.ts';
import { listStoredBytes, type CountRetention } from './activity-queries.ts';
import type { LimitsOf } from './overrides.ts';

/** Knows which accounts have used their quota `storedBytes` up. */
export type StorageWatch = {
  isFull(accountId: number): boolean;
  /** Estimates again; called every hour. */
  look(): Promise<void>;
  close(): Promise<void>;
};

export type StorageWatchOptions = {
  db: Sql;
  limitsOf: LimitsOf;
  retention: CountRetention;
  intervalMs?: number;
  onError: (error: unknown) => void;
};

const hourMs = 3_600_000;

/**
 * The estimate is an hour old at most: an account may pass its quota by what an hour brings. The limit it
 * is held against is the present one, so that an operator's change counts at once.
 */
export async function startStorageWatch(options: StorageWatchOptions): Promise<StorageWatch> {
  const { db, limitsOf, retention, intervalMs = hourMs, onError } = options;
  let stored = new Map<number, number>();
  const read = async () => void (stored = await listStoredBytes(db, retention));
  await read();
  let reading = Promise.resolve();
  const look = () => (reading = reading.then(read).catch(onError));
  const timer = setInterval(() => void look(), intervalMs);
  timer.unref();
  return {
    isFull: (accountId) => (stored.get(accountId) ?? 0) >= limitsOf(accountId).storedBytes,
    look,
    async close() {
      clearInterval(timer);
      await reading;
    },
  };
}
