import type {
  DeviceIdentity,
  Item,
  SentMeasurement,
  Uplink,
  UplinkContent,
} from '../contract/uplink.ts';
import { DomainError } from '../errors.ts';
import { type AccountQueue, createAccountQueue } from './fair-queue.ts';
import {
  costOf,
  type DeviceState,
  type DeviceCost,
  turnsPerBatch,
  type Fragment,
  unreadCost,
} from './rules/model.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** About what a batch costs (`Budget`). */
const defaultCost = 5_000;

/** The messages that wait for a transaction, by device. Devices wait for the turn of their account. */
export class DeviceQueues {
  /** How many messages wait. */
  waiting = 0;
  /** Devices with waiting messages that are in no batch. */
  readonly readyDevices: AccountQueue<DeviceQueue>;
  /** Those of them that have only ticks. They have turns of their own, so that messages do not wait for them. */
  readonly readyTicks: AccountQueue<DeviceQueue>;
  /** The least recently used first. */
  readonly #queues = new Map<number, DeviceQueue>();
  readonly #maxIdle: number;
  #newest: DeviceQueue | undefined;

  /**
   * `maxIdle`: how many devices without waiting messages are remembered; the least recently used go first. `batchCost`:
   * what a batch usually costs; an account's turn is a part of it.
   */
  constructor(maxIdle: number, batchCost = defaultCost) {
    this.#maxIdle = maxIdle;
    const quantum = Math.max(1, batchCost / turnsPerBatch);
    const maxDebt = 4 * batchCost;
    this.readyDevices = createAccountQueue({ quantum, maxDebt });
    this.readyTicks = createAccountQueue({ quantum, maxDebt });
  }

  queueOf(device: DeviceIdentity): DeviceQueue {
    const { deviceId } = device;
    const known = this.#queues.get(deviceId);
    if (known && known === this.#newest) return known;
    if (known) this.#queues.delete(deviceId);
    const queue = (this.#newest = known ?? newDeviceQueue(device));
    this.#queues.set(deviceId, queue);
    if (this.#queues.size > this.#maxIdle) this.#evictIdle(queue);
    return queue;
  }

  /** The queue in which the device waits for its account's turn. */
  readyOf(queue: DeviceQueue): AccountQueue<DeviceQueue> {
    return queue.hasOnlyTicks ? this.readyTicks : this.readyDevices;
  }

  add(queue: DeviceQueue, fragment: Fragment): void {
    const isTick = fragment.content.kind === 'tick';
    if (queue.waiting.length === 0) {
      queue.hasOnlyTicks = isTick;
      // Pushing to an empty array reserves seventeen slots; nearly all of these arrays hold one fragment.
      queue.waiting = [fragment];
    } else {
      if (queue.hasOnlyTicks && !isTick) {
        this.#markUnready(queue);
        queue.hasOnlyTicks = false;
      }
      queue.waiting.push(fragment);
    }
    queue.parsingCost += fragment.message.uplink.parsingCost ?? 0;
    this.waiting += 1;
    this.#markReady(queue);
  }

  /**
   * Charges accounts the difference between what their part of a batch cost and what they were charged for it (`Plan`).
   * A batch of ticks is charged to the turns of both messages and ticks.
   */
  charge(deviceBatches: DeviceBatch[], charges: ReadonlyMap<number, number>): void {
    const areOfTicks = deviceBatches[0]?.queue.isTicking === true;
    for (const { queue } of deviceBatches) queue.charged = 0;
    for (const [accountId, cost] of charges) {
      this.readyDevices.charge(accountId, cost);
      if (areOfTicks) this.readyTicks.charge(accountId, cost);
    }
  }

  /** Returns what a batch had no room for to the front of its queues. The batch still holds these. */
  requeue(postponed: DeviceBatch[]): void {
    for (const { queue, fragments } of postponed) {
      queue.waiting = [...fragments, ...queue.waiting];
      queue.hasOnlyTicks = areTicks(queue.waiting);
      this.waiting += fragments.length;
    }
  }

  /** The batch no longer holds these queues: their waiting messages may be taken. */
  release(deviceBatches: DeviceBatch[]): void {
    for (const { queue } of deviceBatches) {
      queue.busy = false;
      this.#markReady(queue);
    }
  }

  /** Fails the device's messages that were withdrawn. The others keep their order. */
  withdraw(deviceId: number): void {
    const queue = this.#queues.get(deviceId);
    const withdrawn = queue?.waiting.filter(isWithdrawn) ?? [];
    if (!queue || withdrawn.length === 0) return;
    queue.waiting = queue.waiting.filter((fragment) => !isWithdrawn(fragment));
    this.waiting -= withdrawn.length;
    if (queue.waiting.length === 0) this.#markUnready(queue);
    // Last, because a receiver may add messages.
    failWithdrawn(withdrawn);
  }

  /** Fails what waits behind messages that failed: the devices send all of it again, in order. */
  failBehind(deviceBatches: DeviceBatch[], error: unknown): void {
    for (const { queue } of deviceBatches) {
      const { waiting } = queue;
      queue.waiting = [];
      this.waiting -= waiting.length;
      this.#markUnready(queue);
      for (const { message } of waiting) message.fail(error);
    }
  }

  /** Fails everything that waits, because nothing will take it any more. */
  fail(error: unknown): void {
    for (const { waiting } of this.#queues.values())
      for (const { message } of waiting) message.fail(error);
  }

  /** Makes the next batch read the device's state again; without an id, the states of all devices. */
  forget(deviceId?: number): void {
    if (deviceId === undefined) for (const queue of this.#queues.values()) queue.deviceState = null;
    else {
      const queue = this.#queues.get(deviceId);
      if (queue) queue.deviceState = null;
    }
  }

  /** The clock was set, so times that were given before must not move later ones on. */
  forgetStamps(): void {
    for (const queue of this.#queues.values()) queue.lastArrival = null;
  }

  /** Evicts up to a hundredth of the queues at once. Spares queues in use, and the one that is about to be used. */
  #evictIdle(used: DeviceQueue): void {
    let looked = 0;
    for (const [deviceId, queue] of this.#queues) {
      if (looked++ >= this.#maxIdle / 100 || queue === used) return;
      this.#queues.delete(deviceId);
      if (queue.busy || queue.waiting.length > 0) this.#queues.set(deviceId, queue);
    }
  }

  #markReady(queue: DeviceQueue): void {
    if (queue.ready || queue.busy || queue.waiting.length === 0) return;
    queue.ready = true;
    this.readyOf(queue).add(queue);
  }

  #markUnready(queue: DeviceQueue): void {
    if (!queue.ready) return;
    queue.ready = false;
    this.readyOf(queue).remove(queue);
  }
}

type Sent = Item<SentMeasurement>;
type Read = Pick<Uplink, 'content' | 'arrivedTs'>;
/** The part of a device that `assignTimestamps` keeps: per sense, the last time that it gave to a value. */
export type GivenTimestamps = Pick<DeviceQueue, 'lastArrival'>;

/** The longest name of a sense, in characters. */
const longestName = 256;

/**
 * Sorts a message's measurements by time before it is queued; those of the same time keep their order. A measurement
 * without a time gets the time of its arrival.
 */
export function assignTimestamps(
  { content, arrivedTs }: Read,
  queue: GivenTimestamps,
): UplinkContent {
  if (content.kind !== 'measurements') return content;
  const items = assignArrivals(content.items, arrivedTs, queue);
  const inOrder = isInOrder(items)
    ? items
    : items.toSorted((one, other) => tsOf(one) - tsOf(other));
  return inOrder === content.items ? content : { ...content, items: inOrder };
}

/** Values of a sense in quick succession move on by less than this. Beyond it, the time of arrival is used again. */
const longestLeadMs = 60_000;

/**
 * Two values of a sense in the same millisecond would be taken for one delivered twice, so the later one is moved on by
 * a millisecond. Times given before the clock was set back move nothing on.
 */
function assignArrivals(items: Sent[], arrivedTs: WallMs, queue: GivenTimestamps): Sent[] {
  if (items.every(({ value }) => value.ts !== undefined)) return items;
  queue.lastArrival ??= new Map();
  const last = queue.lastArrival;
  const leadMs = longestLeadMs + items.length;
  return items.map((item) => {
    const { index, value } = item;
    if (value.ts !== undefined) return item;
    const nextTs = (last.get(value.sId) ?? -Infinity) + 1;
    const ts = nextTs > arrivedTs && nextTs - arrivedTs <= leadMs ? nextTs : arrivedTs;
    // Senses are checked later, so unknown or long names must not pile up here.
    const isTooMuch = last.size >= 1_024 || value.sId.length > longestName;
    if (!isTooMuch || last.has(value.sId)) last.set(value.sId, ts);
    return { index, value: { ...value, ts }, isStamped: true };
  });
}

const tsOf = ({ value }: Sent): number => value.ts ?? 0;

function isInOrder(items: Sent[]): boolean {
  for (let at = 1; at < items.length; at += 1)
    if (tsOf(items[at] as Sent) < tsOf(items[at - 1] as Sent)) return false;
  return true;
}

/** One device's messages in order of arrival. Two transactions hold it only if one began behind the other's commit. */
export type DeviceQueue = {
  /** As seen last: with the connector of its last message or tick. */
  device: DeviceIdentity;
  accountId: number;
  /** Its neighbours in its account's queue. */
  previous: DeviceQueue | null;
  next: DeviceQueue | null;
  waiting: Fragment[];
  /** It has only ticks, so it waits in the turns of ticks. */
  hasOnlyTicks: boolean;
  /** Whether a batch holds it, and whether that batch was taken from the turns of ticks. */
  busy: boolean;
  isTicking: boolean;
  /** It waits for its account's turn. */
  ready: boolean;
  /** The cost of a measurement in the batch that holds it, and the cost once; as known when the batch was taken. */
  cost: DeviceCost;
  /** The cost of parsing its waiting messages that the account was not charged for yet. */
  parsingCost: number;
  /** What the account was charged, by estimate, for the messages in the batch that holds it. */
  charged: number;
  /** As of the last commit or the one under way; null if it has to be read. */
  deviceState: DeviceState | null;
  /** By sense, the last `ts` given to a measurement without one. It keeps two such measurements apart. */
  lastArrival: Map<string, number> | null;
};

/** A device's part of a batch. */
export type DeviceBatch = { queue: DeviceQueue; fragments: Fragment[] };

/** The queue of a device that nothing is known of yet. */
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
    deviceState: null,
    lastArrival: null,
  };
}

/** Whether the message will be sent again, or its sender is gone. */
function isWithdrawn({ message }: Fragment): boolean {
  return message.delivery.isWithdrawn;
}

/** The fragments that still have to be stored. Fails the others as `unavailable`: their connection has closed. */
export function dropWithdrawn(fragments: Fragment[]): Fragment[] {
  if (!fragments.some(isWithdrawn)) return fragments;
  failWithdrawn(fragments.filter(isWithdrawn));
  return fragments.filter((fragment) => !isWithdrawn(fragment));
}

function failWithdrawn(fragments: Fragment[]): void {
  const error = new DomainError('unavailable', 'The connection closed before this was stored.');
  for (const { message } of fragments) message.fail(error);
}

/** Whether all of these are ticks. */
export function areTicks(fragments: readonly Fragment[]): boolean {
  return fragments.every(({ content }) => content.kind === 'tick');
}

/** When the last tick among these arrived; null if there is none. */
export function tickedTs(fragments: readonly Fragment[]): number | null {
  const last = fragments.findLast(({ content }) => content.kind === 'tick');
  return last?.message.uplink.arrivedTs ?? null;
}

/**
 * Takes the next batch by the accounts' turns, up to an estimated cost of about `maxCost` (`Budget`), and charges the
 * accounts. When an account's turn is used up, its device keeps the rest of its messages. These may still go into this
 * batch if the account's turn comes again. `from`: the turns of messages, or of ticks.
 */
export function takeBatch(
  queues: DeviceQueues,
  maxCost: number,
  from: AccountQueue<DeviceQueue> = queues.readyDevices,
): DeviceBatch[] {
  const batch: DeviceBatch[] = [];
  let again: Map<DeviceQueue, DeviceBatch> | null = null;
  let cost = 0;
  while (cost < maxCost) {
    const queue = from.next();
    if (!queue) break;
    const begun = queue.busy ? again?.get(queue) : undefined;
    const deviceBatch = begun ?? { queue, fragments: [] };
    const taken = takeFragments(
      deviceBatch,
      Math.min(maxCost - cost, from.remaining()),
      !begun,
      queues,
    );
    // Ticks have their own turns, but the account is charged for them in both.
    queue.isTicking = from !== queues.readyDevices;
    if (queue.isTicking) from.charge(queue.accountId, taken);
    cost += taken;
    if (!begun) batch.push(deviceBatch);
    queue.busy = true;
    queue.ready = queue.waiting.length > 0;
    if (!queue.ready) continue;
    (again ??= new Map()).set(queue, deviceBatch);
    from.add(queue);
  }
  for (const queue of again?.keys() ?? []) {
    if (queue.ready) from.remove(queue);
    queue.ready = false;
  }
  return batch;
}

/**
 * Moves the first of a device's messages, at least one and up to a cost of about `remaining`, into its part of the
 * batch. Returns their estimated cost.
 */
function takeFragments(
  deviceBatch: DeviceBatch,
  remaining: number,
  isFirst: boolean,
  queues: DeviceQueues,
): number {
  const { queue } = deviceBatch;
  if (isFirst) queue.cost = costOf(queue.deviceState);
  const { perItem } = queue.cost;
  const once = isFirst ? queue.cost.once : 0;
  const { waiting } = queue;
  const most = (remaining - once) / perItem;
  let items = 0;
  let count = 0;
  while (count < waiting.length && (count === 0 || items < most))
    items += (waiting[count++] as Fragment).size;
  const fragments = count < waiting.length ? waiting.splice(0, count) : waiting;
  if (fragments === waiting) queue.waiting = [];
  queues.waiting -= fragments.length;
  if (isFirst) deviceBatch.fragments = fragments;
  else for (const fragment of fragments) deviceBatch.fragments.push(fragment);
  const estimate = items * perItem + once;
  queue.charged = isFirst ? estimate : queue.charged + estimate;
  // A plan's cost contains neither reading nor parsing, so these stay charged.
  if (isFirst && !queue.deviceState) queue.charged -= once;
  queues.readyDevices.charge(queue.accountId, estimate + queue.parsingCost);
  queue.parsingCost = 0;
  return estimate;
}
