import { LRUCache } from 'lru-cache';
import { isUuid } from '../lib/uuid.ts';
import type { Bus } from '../bus/bus.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import { createAccessFinder } from './find-access.ts';

export type DeviceIdentifierDeps = {
  db: Sql;
  bus: Bus;
  /** Whether the operator has shut the account out, as far as this process knows. */
  isDisabled?: (accountId: number) => boolean;
  /** Devices that are remembered. */
  maxRemembered?: number;
};

export type DeviceIdentifier = {
  /**
   * The device with this uuid, whose credentials somebody else has checked; null when there is none, or
   * its account is disabled.
   * No query once it is known. Rejects with `unavailable` when the store is away and it is not.
   */
  identify(uuid: string): Promise<DeviceIdentity | null>;
  close(): void;
};

/** Knows devices by their uuid, and forgets them when the bus tells of a change or may have missed one. */
export function createDeviceIdentifier(deps: DeviceIdentifierDeps): DeviceIdentifier {
  const { db, bus, isDisabled = () => false, maxRemembered = 100_000 } = deps;
  const known = new LRUCache<string, DeviceIdentity>({ max: maxRemembered });
  const finder = createAccessFinder(db, ({ deviceId, uuid, accountId }) => {
    known.set(uuid, { deviceId, uuid, accountId });
  });
  const unsubscribe = [
    bus.subscribe('access', ({ uuid }) => {
      known.delete(uuid);
      finder.invalidate(uuid);
    }),
    bus.subscribe('resync', () => {
      known.clear();
      finder.invalidate();
    }),
  ];
  return {
    async identify(uuid) {
      const remembered = known.get(uuid);
      if (remembered) return isDisabled(remembered.accountId) ? null : remembered;
      if (!isUuid(uuid)) return null;
      const access = await finder.find(uuid);
      return access && { deviceId: access.deviceId, uuid, accountId: access.accountId };
    },
    close: () => unsubscribe.forEach((end) => end()),
  };
}
