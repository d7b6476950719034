import type { DeviceIdentity } from '../../contract/uplink.ts';
import { DomainError } from '../../errors.ts';
import { type DeviceCost, unreadCost } from '../rules/model.ts';
import type { DeviceContext } from '../rules/device-context.ts';
import type { Unit } from '../rules/message.ts';

/**
 * One device's messages in the order of their arrival. Two transactions share a queue only where one has
 * begun behind the commit of the other.
 */
export type DeviceQueue = {
  /** As it was seen last: at the connector of its last message, or of its last tick. */
  device: DeviceIdentity;
  accountId: number;
  /** Its neighbours in its account's queue. */
  previous: DeviceQueue | null;
  next: DeviceQueue | null;
  waiting: Unit[];
  /** Nothing but time comes to the device: it waits for the turns of ticks. */
  hasOnlyTicks: boolean;
  /** A batch holds it; whether that was taken from the turns of ticks. */
  busy: boolean;
  isTicking: boolean;
  /** It waits for its account's turn. */
  ready: boolean;
  /** Of a measurement in the batch that holds it, and once; as it was known when the batch was taken. */
  cost: DeviceCost;
  /** What parsing its waiting messages took, and is not charged to the account yet. */
  parsingCost: number;
  /** What the account was charged for those in the batch that holds it, by estimate. */
  charged: number;
  /** As of the last commit, or the one under way; null when it must be read (again). */
  context: DeviceContext | null;
  /** Last `ts` given to a measurement that came without one, by sense: two of them are two. */
  lastArrival: Map<string, number> | null;
};

/** A device's part of a batch. */
export type Work = { queue: DeviceQueue; units: Unit[] };

/** Of a device that nothing is known of. */
export function newDeviceQueue(device: DeviceIdentity): DeviceQueue {
  return {
    device,
    accountId: device.accountId,
    previous: null,
    next: null,
    waiting: [],
    hasOnlyTicks: false,
    busy: false,
    isTicking: false,
    ready: false,
    cost: unreadCost,
    parsingCost: 0,
    charged: 0,
    context: null,
    lastArrival: null,
  };
}

/** Whether its message will be sent again, or belongs to nobody any more. */
export function isWithdrawn({ message }: Unit): boolean {
  return message.delivery.isWithdrawn;
}

/** Those that are still to be stored. The others' connection is closed: they fail, as `unavailable`. */
export function dropWithdrawn(units: Unit[]): Unit[] {
  if (!units.some(isWithdrawn)) return units;
  failWithdrawn(units.filter(isWithdrawn));
  return units.filter((unit) => !isWithdrawn(unit));
}

export function failWithdrawn(units: Unit[]): void {
  const error = new DomainError('unavailable', 'The connection closed before this was stored.');
  for (const { message } of units) message.fail(error);
}

/** Whether time is all that these messages bring. */
export function areTicks(units: readonly Unit[]): boolean {
  return units.every(({ content }) => content.kind === 'tick');
}

/** When the last of these messages arrived that is a tick; null: none is. */
export function tickedTs(units: readonly Unit[]): number | null {
  const last = units.findLast(({ content }) => content.kind === 'tick');
  return last?.message.uplink.arrivedTs ?? null;
}
