import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { Bucket, Rate } from './rate-limit.ts';

/** What an account's devices bring together, over all transports. */
export type AccountRates = {
  readonly id: number;
  rate: Rate;
  readonly measurements: Bucket;
  devices: number;
};

/** What a device has used of its rates, over all transports. */
export type DeviceRates = {
  readonly deviceId: number;
  readonly account: AccountRates;
  readonly messages: Bucket;
  readonly measurements: Bucket;
  /** What is no message: other packets, and polls over HTTP. */
  readonly others: Bucket;
  /** What is left of what it may bring beyond its rates; null: all of it. */
  beyond: Bucket | null;
  /** Transports that remember it. */
  users: number;
};

export type RememberedRates = {
  /** To be left again by whoever entered it. */
  enter(identity: DeviceIdentity): DeviceRates;
  leave(rates: DeviceRates): void;
  /** How many devices are remembered. */
  count(): number;
};

export type RememberedRatesDeps = {
  newAccount: (accountId: number) => AccountRates;
  newDevice: (deviceId: number, account: AccountRates) => DeviceRates;
  /** Whether a device that is new would be no different. */
  isForgettable: (rates: DeviceRates) => boolean;
};

/** So many devices that no transport remembers are kept, before those are looked for that may be forgotten. */
const forgetAt = 1_000;

/** What is known of devices, as long as a transport remembers them or they differ from a new one. */
export function createRememberedRates(deps: RememberedRatesDeps): RememberedRates {
  const devices = new Map<number, DeviceRates>();
  const accounts = new Map<number, AccountRates>();
  /** Those that no transport remembers. */
  const left = new Set<DeviceRates>();
  let lookAt = forgetAt;

  function accountOf(id: number): AccountRates {
    const known = accounts.get(id);
    if (known) return known;
    const account = deps.newAccount(id);
    accounts.set(id, account);
    return account;
  }

  function newDevice({ deviceId, accountId }: DeviceIdentity): DeviceRates {
    const account = accountOf(accountId);
    account.devices += 1;
    const rates = deps.newDevice(deviceId, account);
    devices.set(deviceId, rates);
    return rates;
  }

  function forget(rates: DeviceRates): void {
    const { deviceId, account } = rates;
    left.delete(rates);
    devices.delete(deviceId);
    account.devices -= 1;
    if (account.devices === 0) accounts.delete(account.id);
  }

  function forgetLeft(): void {
    for (const rates of left) if (deps.isForgettable(rates)) forget(rates);
    // Where few can be forgotten the next look is far off.
    lookAt = Math.max(forgetAt, 2 * left.size);
  }

  return {
    enter(identity) {
      const rates = devices.get(identity.deviceId) ?? newDevice(identity);
      if (rates.users === 0) left.delete(rates);
      rates.users += 1;
      return rates;
    },

    leave(rates) {
      rates.users -= 1;
      if (rates.users > 0) return;
      if (deps.isForgettable(rates)) return forget(rates);
      left.add(rates);
      if (left.size >= lookAt) forgetLeft();
    },

    count: () => devices.size,
  };
}
