import type { AlarmSignal } from '../contract/alarm.ts';
import type {
  Delivery,
  DeviceIdentity,
  Item,
  SentMeasurement,
  Rejection,
  Uplink,
  UplinkContent,
} from '../contract/uplink.ts';
import { DomainError } from '../errors.ts';
import { LastByOthers } from '../lib/fair-queue.ts';
import {
  costOf,
  type DeviceState,
  type DeviceCost,
  turnsPerBatch,
  type Fragment,
  type FragmentContent,
  type Message,
  unreadCost,
} from './rules/model.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** About what a batch costs (`Budget`). */
const defaultCost = 5_000;

/** So many alarms decided in one transaction are a storm, which lasts until there was none for `stormMs`. */
const stormAlarms = 32;
const stormMs = 10_000;

/** The messages that wait for a transaction, by device. Devices wait for the turn of their account. */
export class DeviceQueues {
  /** How many messages wait. */
  waiting = 0;
  /** Devices with waiting messages that are in no batch. */
  readonly readyDevices: AccountQueue<DeviceQueue>;
  /** Those of them that have only ticks. They have turns of their own, so that messages do not wait for them. */
  readonly readyTicks: AccountQueue<DeviceQueue>;
  /** Those of accounts with a storm of alarms (`noteStorms`), so that nobody else waits until all are decided. */
  readonly readyStorms: AccountQueue<DeviceQueue>;
  /** The accounts whose messages were taken, and when; monotonic, ms. */
  readonly taken = new LastByOthers();
  /** By account, until when its messages wait in `readyStorms`; monotonic, ms. */
  readonly #storms = new Map<number, number>();
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
    this.readyStorms = createAccountQueue({ quantum, maxDebt });
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
  readyOf({ hasOnlyTicks, accountId }: DeviceQueue): AccountQueue<DeviceQueue> {
    if (hasOnlyTicks) return this.readyTicks;
    return this.#storms.has(accountId) ? this.readyStorms : this.readyDevices;
  }

  /**
   * Gives accounts batches of their own for a while after one transaction decided on many of their alarms: that takes
   * ten statements one after the other, and others would wait for it (docs/noisy-neighbours.md). If nobody else sends,
   * nobody has to.
   */
  noteStorms(signals: readonly AlarmSignal[], monotonicMs: number): void {
    for (const [accountId, untilMs] of this.#storms) {
      if (untilMs > monotonicMs) break;
      this.#storms.delete(accountId);
    }
    const alarms = new Map<number, number>();
    for (const signal of signals) {
      if (signal.kind !== 'fired' && signal.kind !== 'ended') continue;
      const { accountId } = signal.device;
      const more = signal.kind === 'ended' ? signal.of.length : 1;
      alarms.set(accountId, (alarms.get(accountId) ?? 0) + more);
    }
    for (const [accountId, count] of alarms) {
      if (count < stormAlarms || monotonicMs - this.taken.than(accountId) > stormMs) continue;
      // The one that ends first is the first in the map.
      this.#storms.delete(accountId);
      this.#storms.set(accountId, monotonicMs + stormMs);
    }
  }

  /** Whether messages of other accounts wait. */
  othersWait(accountId: number): boolean {
    return this.readyDevices.othersWait(accountId) || this.readyStorms.othersWait(accountId);
  }

  /** Queues what a device sent, or a tick, behind its earlier messages. */
  enqueue(device: DeviceIdentity, message: Message, content: FragmentContent): void {
    const queue = this.queueOf(device);
    queue.device = device;
    const { arrivedTs, rejections } = message.uplink;
    const stamped =
      content.kind === 'measurements' ? assignTimestamps({ content, arrivedTs }, queue) : content;
    this.add(queue, newFragment(message, stamped, rejections));
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
   * A batch of ticks or of a storm is charged to the turns of messages, too.
   */
  charge(deviceBatches: DeviceBatch[], charges: ReadonlyMap<number, number>): void {
    const from = deviceBatches[0]?.queue.takenFrom ?? this.readyDevices;
    for (const { queue } of deviceBatches) queue.charged = 0;
    for (const [accountId, cost] of charges) {
      this.readyDevices.charge(accountId, cost);
      if (from !== this.readyDevices) from.charge(accountId, cost);
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
      for (const { message } of waiting) failMessage(message, error);
    }
  }

  /** Fails everything that waits, because nothing will take it any more. */
  fail(error: unknown): void {
    for (const { waiting } of this.#queues.values())
      for (const { message } of waiting) failMessage(message, error);
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
    queue.ready = this.readyOf(queue);
    queue.ready.add(queue);
  }

  #markUnready(queue: DeviceQueue): void {
    queue.ready?.remove(queue);
    queue.ready = null;
  }
}

/** A message that waits for its commit. `newUuid` names it if something of it is rejected. */
export function newMessage(uplink: Uplink, delivery: Delivery, newUuid: () => string): Message {
  return {
    uplink,
    delivery,
    id: undefined,
    newUuid,
    rejectionsStored: 0,
    isPayloadStored: false,
    recorded: 0,
    open: 1,
    outcome: delivery.settled ? { stored: 0, repeated: 0, rejected: [] } : null,
  };
}

/** The uplink of a tick, which has neither topic nor payload. */
export function uplinkOfTick(arrivedTs: WallMs): Uplink {
  return { topic: '', excerpt: '', arrivedTs, content: { kind: 'none' }, rejections: [] };
}

/** One of its fragments will not be stored, so the message is not acknowledged. Reported once. */
export function failMessage(message: Message, error: unknown): void {
  if (message.open <= 0) return;
  // Its other fragments do not count any more.
  message.open = -Infinity;
  message.delivery.failed(error);
}

/** A part of a message. `size`: how many items it adds to a batch. */
export function newFragment(
  message: Message,
  content: FragmentContent,
  rejections: Rejection[],
): Fragment {
  const size = 'items' in content ? Math.max(1, content.items.length) : 1;
  return { message, content, size, rejections };
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
  /** Whether a batch holds it, and from which turns that or the last one was taken. */
  busy: boolean;
  takenFrom: AccountQueue<DeviceQueue> | null;
  /** Where it waits for its account's turn; null: it does not. */
  ready: AccountQueue<DeviceQueue> | null;
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
function newDeviceQueue(device: DeviceIdentity): DeviceQueue {
  return {
    device,
    accountId: device.accountId,
    previous: null,
    next: null,
    waiting: [],
    hasOnlyTicks: false,
    busy: false,
    takenFrom: null,
    ready: null,
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
  for (const { message } of fragments) failMessage(message, error);
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
 * batch if the account's turn comes again. `from`: the turns of messages, of ticks, or of storms. Devices that began to
 * wait before their account's storm go on to its turns, so the batch may be empty.
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
    const goesOn = from === queues.readyDevices && queues.readyOf(queue) === queues.readyStorms;
    if (goesOn && !queue.busy) {
      queue.ready = queues.readyStorms;
      queue.ready.add(queue);
      continue;
    }
    const begun = queue.busy ? again?.get(queue) : undefined;
    const deviceBatch = begun ?? { queue, fragments: [] };
    const taken = takeFragments(
      deviceBatch,
      Math.min(maxCost - cost, from.remaining()),
      !begun,
      queues,
    );
    // Ticks and storms have their own turns, but the account is charged for them in both.
    queue.takenFrom = from;
    if (from !== queues.readyDevices) from.charge(queue.accountId, taken);
    cost += taken;
    if (!begun) batch.push(deviceBatch);
    queue.busy = true;
    queue.ready = queue.waiting.length > 0 ? from : null;
    if (!queue.ready) continue;
    (again ??= new Map()).set(queue, deviceBatch);
    from.add(queue);
  }
  for (const queue of again?.keys() ?? []) {
    queue.ready?.remove(queue);
    queue.ready = null;
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

/** First in, first out; elements can leave from the middle at the same cost. */
type LinkedQueue<T> = { first: T | null; last: T | null };

type Account<T> = LinkedQueue<T> & {
  readonly id: number;
  /** What it may still spend; negative: what it owes. */
  deficit: number;
  /** It is in the ring: it has waiting elements, or had when its turn last ended. */
  isInRing: boolean;
  /** The round in which it left the ring, or in which its debt was last updated. */
  round: number;
  next: Account<T> | null;
};

const leastRemembered = 1_000;

export function createAccountQueue<T extends Queued<T>>(
  options: AccountQueueOptions,
): AccountQueue<T> {
  const { quantum, maxDebt, maxDebtors = 10_000 } = options;
  const accounts = new Map<number, Account<T>>();
  /** The ring, from the account whose turn it is to the one that waits longest. */
  let head: Account<T> | null = null;
  let tail: Account<T> | null = null;
  /** When its turn ends, every account has had one. */
  let endOfRound: Account<T> | null = null;
  let round = 0;
  /** How many accounts have waiting elements. */
  let waiting = 0;
  let forgetAt = leastRemembered;

  function accountOf(id: number): Account<T> {
    const known = accounts.get(id);
    if (known) return known;
    if (accounts.size >= forgetAt) forgetPaid();
    const account: Account<T> = {
      first: null,
      last: null,
      id,
      deficit: 0,
      isInRing: false,
      round,
      next: null,
    };
    accounts.set(id, account);
    return account;
  }

  /** An account's debt goes down by a turn each round, even while it has nothing waiting. */
  function payOff(account: Account<T>): void {
    account.deficit = Math.min(0, account.deficit + (round - account.round) * quantum);
    account.round = round;
  }

  /** Forgets accounts that owe nothing any more, and the oldest of too many debtors. */
  function forgetPaid(): void {
    let debtors = 0;
    for (const account of accounts.values()) {
      if (account.isInRing) continue;
      payOff(account);
      if (account.deficit === 0) accounts.delete(account.id);
      else debtors += 1;
    }
    for (const account of accounts.values()) {
      if (debtors <= maxDebtors / 2) break;
      if (account.isInRing) continue;
      accounts.delete(account.id);
      debtors -= 1;
    }
    forgetAt = Math.max(leastRemembered, accounts.size + maxDebtors / 2);
  }

  function enter(account: Account<T>): void {
    payOff(account);
    account.deficit += quantum;
    account.isInRing = true;
    pushBack(account);
  }

  function pushBack(account: Account<T>): void {
    account.next = null;
    if (tail) tail.next = account;
    else head = endOfRound = account;
    tail = account;
  }

  function endTurn(account: Account<T>): void {
    head = account.next;
    if (!head) tail = null;
    const isRoundOver = account === endOfRound;
    if (isRoundOver) {
      round += 1;
      endOfRound = tail;
    }
    if (account.first) {
      account.deficit += quantum;
      pushBack(account);
      if (isRoundOver) endOfRound = account;
      return;
    }
    account.isInRing = false;
    account.round = round;
    account.next = null;
    // Unspent credit lapses.
    if (account.deficit >= 0) accounts.delete(account.id);
  }

  function takeOut(account: Account<T>, element: T): void {
    unlink(account, element);
    accountQueue.size -= 1;
    if (!account.first) waiting -= 1;
  }

  const accountQueue: { -readonly [K in keyof AccountQueue<T>]: AccountQueue<T>[K] } = {
    size: 0,
    add(element) {
      const account = accountOf(element.accountId);
      if (!account.first) waiting += 1;
      enqueue(account, element);
      accountQueue.size += 1;
      if (!account.isInRing) enter(account);
    },
    remove(element) {
      const account = accounts.get(element.accountId);
      if (account) takeOut(account, element);
    },
    next() {
      while (head) {
        const { first } = head;
        if (first && head.deficit > 0) {
          takeOut(head, first);
          return first;
        }
        endTurn(head);
      }
      return null;
    },
    remaining: () => (head?.next ? Math.max(0, head.deficit) : Infinity),
    charge(accountId, cost) {
      const known = accounts.get(accountId);
      if (!known && cost <= 0) return;
      const account = known ?? accountOf(accountId);
      if (!account.isInRing) payOff(account);
      account.deficit = Math.max(-maxDebt, Math.min(quantum, account.deficit - cost));
      if (!account.isInRing && account.deficit >= 0) accounts.delete(accountId);
    },
    othersWait: (accountId) => waiting > (accounts.get(accountId)?.first ? 1 : 0),
    countAccounts: () => accounts.size,
  };
  return accountQueue;
}

/** Appends an element that is in no queue. */
function enqueue<T extends Queued<T>>(queue: LinkedQueue<T>, element: T): void {
  element.previous = queue.last;
  if (queue.last) queue.last.next = element;
  else queue.first = element;
  queue.last = element;
}

/** Removes an element, wherever it is. */
function unlink<T extends Queued<T>>(queue: LinkedQueue<T>, element: T): void {
  const { previous, next } = element;
  if (previous) previous.next = next;
  else queue.first = next;
  if (next) next.previous = previous;
  else queue.last = previous;
  element.previous = element.next = null;
}

/** An element of an account's queue, which is also a link of it. */
type Queued<T> = { readonly accountId: number; previous: T | null; next: T | null };

type AccountQueueOptions = {
  /** What an account may spend in a turn, as `Budget` counts. */
  quantum: number;
  /** The most that an account can owe; more is forgiven. */
  maxDebt: number;
  /** How many accounts may owe something without anything waiting. Further debts are forgotten. */
  maxDebtors?: number;
};

/**
 * Deficit round robin over accounts (Shreedhar and Varghese, 1995). The elements of an account keep their order. Costs
 * need not be known when an element is taken: they are charged afterwards, and an account that overspent misses turns
 * until that is paid off. An account that waits alone is never delayed.
 */
type AccountQueue<T> = {
  /** Appends to what its account has waiting. */
  add(element: T): void;
  /** Removes an element, wherever it is. */
  remove(element: T): void;
  /** Takes the next element in turn; null if none waits. Charge its cost before taking another. */
  next(): T | null;
  /** What the account of the last taken element may still spend in this turn; `Infinity` if no other account waits. */
  remaining(): number;
  /** A negative cost is given back. */
  charge(accountId: number, cost: number): void;
  /** Whether another account has waiting elements. */
  othersWait(accountId: number): boolean;
  /** How many elements wait. */
  readonly size: number;
  /** How many accounts are known: those that wait, and those that owe. */
  countAccounts(): number;
};
