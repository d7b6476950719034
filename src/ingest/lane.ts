import type { DeviceIdentity } from '../core/uplink.ts';
import type { DeviceContext } from './context.ts';
import type { Unit } from './entry.ts';
import { costOf, type DeviceCost } from './weight.ts';

/**
 * One device's messages in the order of their arrival. Two transactions share a lane only where one has
 * begun behind the commit of the other.
 */
export type Lane = {
  device: DeviceIdentity;
  accountId: number;
  /** Its neighbours in its account's queue. */
  previous: Lane | null;
  next: Lane | null;
  waiting: Unit[];
  busy: boolean;
  ready: boolean;
  /** Of a measurement in the batch that holds it, and once; as it was known when the batch was taken. */
  cost: DeviceCost;
  /** What parsing its waiting messages took, and is not charged to the account yet. */
  parsing: number;
  /** What the account was charged for those in the batch that holds it, by estimate. */
  charged: number;
  /** As of the last commit, or the one under way; null when it must be read (again). */
  context: DeviceContext | null;
  /** Last `ts` given to a measurement that came without one, by sense: two of them are two. */
  lastArrival: Map<string, number> | null;
};

export type Work = { lane: Lane; units: Unit[] };

/** Of a device that nothing is known of. */
export function newLane(device: DeviceIdentity): Lane {
  return {
    device,
    accountId: device.accountId,
    previous: null,
    next: null,
    waiting: [],
    busy: false,
    ready: false,
    cost: costOf(null),
    parsing: 0,
    charged: 0,
    context: null,
    lastArrival: null,
  };
}
