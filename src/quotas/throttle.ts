import type { DeviceIdentity, AccountThrottle } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import { listStoredBytes, type CountRetention } from './activity-queries.ts';
import type { EventRate } from './event-rate.ts';
import type { LimitsOf } from './overrides.ts';

export type ThrottleDeps = {
  rate: EventRate;
  storage: Pick<StorageWatch, 'isFull'>;
  /** Keeps a rejection that says that the account's storage is full. */
  tellFull: (device: DeviceIdentity, topic: string) => void;
  clock: () => number;
};

/** Then it is asked again: the quota may have been raised. */
const lookAgainMs = 1_000;
const dayMs = 86_400_000;

/** Brings together what slows an account's devices: `eventsPerSecond` and `storedBytes`. */
export function createAccountThrottle({
  rate,
  storage,
  tellFull,
  clock,
}: ThrottleDeps): AccountThrottle {
  let day = 0;
  /** Devices whose account's storage is full, and that were told so today (UTC). */
  const told = new Set<number>();
  return {
    isFull: (accountId) => storage.isFull(accountId),
    waitMs: (accountId) => (storage.isFull(accountId) ? lookAgainMs : rate.waitMs(accountId)),
    waits(device, topic) {
      if (!storage.isFull(device.accountId)) return;
      const today = Math.floor(clock() / dayMs);
      if (today !== day) told.clear();
      day = today;
      if (told.has(device.deviceId)) return;
      told.add(device.deviceId);
      tellFull(device, topic);
    },
  };
}

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
