import type { DeviceIdentity, AccountThrottle } from '../contract/uplink.ts';
import type { EventRate } from './event-rate.ts';
import type { StorageWatch } from './storage-watch.ts';

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
