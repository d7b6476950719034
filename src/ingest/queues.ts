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

/** What a batch costs, about (`Budget`). */
const defaultCost = 5_000;

/** The messages that wait for a transaction, by device; devices wait for the turns of their accounts. */
export class DeviceQueues {
  /** Messages that wait. */
  waiting = 0;
  /** The devices with messages that no batch holds. */
  readonly readyDevices: AccountQueue<DeviceQueue>;
  /** Those of them to which only time comes: messages do not wait for what they take. */
  readonly readyTicks: AccountQueue<DeviceQueue>;
  /** The least recently used one first. */
  readonly #queues = new Map<number, DeviceQueue>();
  readonly #maxIdle: number;
  #newest: DeviceQueue | undefined;

  /**
   * `maxIdle`: how many devices without waiting messages are remembered (least recently used go first).
   * `batchCost`: what a batch takes as a rule; accounts' turns are parts of it.
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

  /** Where the device waits for its account's turn. */
  readyOf(queue: DeviceQueue): AccountQueue<DeviceQueue> {
    return queue.hasOnlyTicks ? this.readyTicks : this.readyDevices;
  }

  add(queue: DeviceQueue, fragment: Fragment): void {
    const isTick = fragment.content.kind === 'tick';
    if (queue.waiting.length === 0) {
      queue.hasOnlyTicks = isTick;
      // An empty array that is pushed to makes room for seventeen: nearly all of these hold one.
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
   * Charges accounts what their part of a batch really cost, beyond what they were (`Plan`): in the turns of messages,
   * and those of ticks where it was taken from these.
   */
  charge(deviceBatches: DeviceBatch[], charges: ReadonlyMap<number, number>): void {
    const areOfTicks = deviceBatches[0]?.queue.isTicking === true;
    for (const { queue } of deviceBatches) queue.charged = 0;
    for (const [accountId, cost] of charges) {
      this.readyDevices.charge(accountId, cost);
      if (areOfTicks) this.readyTicks.charge(accountId, cost);
    }
  }

  /** Takes back what a batch had no room for: it is the next of its queues, which that batch still holds. */
  requeue(postponed: DeviceBatch[]): void {
    for (const { queue, fragments } of postponed) {
      queue.waiting = [...fragments, ...queue.waiting];
      queue.hasOnlyTicks = areTicks(queue.waiting);
      this.waiting += fragments.length;
    }
  }

  /** No batch holds these queues any more: what waits in them may be taken. */
  release(deviceBatches: DeviceBatch[]): void {
    for (const { queue } of deviceBatches) {
      queue.busy = false;
      this.#markReady(queue);
    }
  }

  /** A device's messages that were withdrawn fail now; the others keep their order. */
  withdraw(deviceId: number): void {
    const queue = this.#queues.get(deviceId);
    const withdrawn = queue?.waiting.filter(isWithdrawn) ?? [];
    if (!queue || withdrawn.length === 0) return;
    queue.waiting = queue.waiting.filter((fragment) => !isWithdrawn(fragment));
    this.waiting -= withdrawn.length;
    if (queue.waiting.length === 0) this.#markUnready(queue);
    // Last: whoever is told may add messages.
    failWithdrawn(withdrawn);
  }

  /** What waits behind messages that failed fails too: its devices send all of it again, in order. */
  failBehind(deviceBatches: DeviceBatch[], error: unknown): void {
    for (const { queue } of deviceBatches) {
      const { waiting } = queue;
      queue.waiting = [];
      this.waiting -= waiting.length;
      this.#markUnready(queue);
      for (const { message } of waiting) message.fail(error);
    }
  }

  /** All that waits fails: nothing will take it any more. */
  fail(error: unknown): void {
    for (const { waiting } of this.#queues.values())
      for (const { message } of waiting) message.fail(error);
  }

  /** Makes the next batch read the device's state again; without a device, those of all. */
  forget(deviceId?: number): void {
    if (deviceId === undefined) for (const queue of this.#queues.values()) queue.deviceState = null;
    else {
      const queue = this.#queues.get(deviceId);
      if (queue) queue.deviceState = null;
    }
  }

  /** The clock was set: what was given by it before is no reason to give a later time now. */
  forgetStamps(): void {
    for (const queue of this.#queues.values()) queue.lastArrival = null;
  }

  /** A hundredth at once. A queue in use is spared, and so is the one that is about to be. */
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
/** What `assignTimestamps` keeps of a device: the last time that a value of each sense was given. */
export type GivenTimestamps = Pick<DeviceQueue, 'lastArrival'>;

/** Characters; no name of a sense is longer. */
const longestName = 256;

/**
 * A message as it is queued: its measurements in the order of their times, those of one time as they were
 * sent. Those without a time have that of their arrival.
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

/** More than the values of a sense that come in a row have moved on: beyond it, the arrival counts again. */
const longestLeadMs = 60_000;

/**
 * Two values of one sense in the same millisecond would be taken for one delivered twice, so the later one is
 * moved on by a millisecond. What was given by a clock that has been set back since moves nothing on.
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
    // Senses are checked later: unknown names must not pile up here, nor long ones.
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
  waiting: Fragment[];
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
  deviceState: DeviceState | null;
  /** Last `ts` given to a measurement that came without one, by sense: two of them are two. */
  lastArrival: Map<string, number> | null;
};

/** A device's part of a batch. */
export type DeviceBatch = { queue: DeviceQueue; fragments: Fragment[] };

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
    deviceState: null,
    lastArrival: null,
  };
}

/** Whether its message will be sent again, or belongs to nobody any more. */
function isWithdrawn({ message }: Fragment): boolean {
  return message.delivery.isWithdrawn;
}

/** Those that are still to be stored. The others' connection is closed: they fail, as `unavailable`. */
export function dropWithdrawn(fragments: Fragment[]): Fragment[] {
  if (!fragments.some(isWithdrawn)) return fragments;
  failWithdrawn(fragments.filter(isWithdrawn));
  return fragments.filter((fragment) => !isWithdrawn(fragment));
}

function failWithdrawn(fragments: Fragment[]): void {
  const error = new DomainError('unavailable', 'The connection closed before this was stored.');
  for (const { message } of fragments) message.fail(error);
}

/** Whether time is all that these messages bring. */
export function areTicks(fragments: readonly Fragment[]): boolean {
  return fragments.every(({ content }) => content.kind === 'tick');
}

/** When the last of these messages arrived that is a tick; null: none is. */
export function tickedTs(fragments: readonly Fragment[]): number | null {
  const last = fragments.findLast(({ content }) => content.kind === 'tick');
  return last?.message.uplink.arrivedTs ?? null;
}

/**
 * The next batch: what is next by the accounts' turns, up to about `maxCost` (`Budget`, by estimate), which
 * accounts are charged. A device whose account has spent its turn keeps the rest of its messages, and goes
 * on with them in the same batch where the turn comes round to it again. `from`: those of messages, or of ticks.
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
    // Turns of ticks are beside those of messages; what they take is the account's all the same.
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
 * Takes the first of a device's messages, at least one and of about the cost `room`, into its part of the batch; gives
 * their cost.
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
  // What reading takes is no part of a plan's cost, nor is parsing: that much stays charged.
  if (isFirst && !queue.deviceState) queue.charged -= once;
  queues.readyDevices.charge(queue.accountId, estimate + queue.parsingCost);
  queue.parsingCost = 0;
  return estimate;
}
