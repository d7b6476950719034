import type { DeviceIdentity } from '../../contract/uplink.ts';
import type { DeviceContext } from '../rules/device-context.ts';
import type { Unit } from '../rules/message.ts';
import { costOf, type DeviceCost } from '../rules/cost.ts';

/**
 * One device's messages in the order of their arrival. Two transactions share a queue only where one has
 * begun behind the commit of the other.
 */
export type DeviceQueue = {
  device: DeviceIdentity;
  accountId: number;
  /** Its neighbours in its account's queue. */
  previous: DeviceQueue | null;
  next: DeviceQueue | null;
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

export type Work = { queue: DeviceQueue; units: Unit[] };

/** Of a device that nothing is known of. */
export function newDeviceQueue(device: DeviceIdentity): DeviceQueue {
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
