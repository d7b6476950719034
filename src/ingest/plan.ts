import { type DeviceBatch, type DeviceQueue, newFragment } from './queue.ts';
import { apply, type DueRow, planDue } from './rules/apply.ts';
import {
  type AnsweredCommands,
  type ApplyLimits,
  Budget,
  type Changes,
  costOf,
  type DeviceState,
  evidenceCost,
  type Message,
  noChanges,
  type StoredAlready,
  turnsPerBatch,
  type Fragment,
  unreadCost,
} from './rules/model.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** One transaction, computed but not written. */
export type Plan = {
  rows: Changes;
  /** Devices whose row changes in more than its evidence, as they are afterwards. `version`: the one that was read. */
  moved: DeviceState[];
  /** Devices whose row changes only in its evidence or version. */
  evaluated: DeviceState[];
  /** Devices whose row stays, and must still be as it was read: `held` with a profile, `unchanged` without. */
  held: DeviceState[];
  unchanged: DeviceState[];
  /** When devices are due next, if that changes. */
  due: DueRow[];
  /** What each queue knows after the commit. */
  after: { queue: DeviceQueue; deviceState: DeviceState }[];
  /** The messages, or parts of them, that are stored with it. */
  fragments: Fragment[];
  /** Messages of devices that were removed. */
  orphaned: Fragment[];
  /** What it contains of the batch, and what it has no room for. */
  deviceBatches: DeviceBatch[];
  postponed: DeviceBatch[];
  /** The messages that were split: each has fragments in both. */
  split: Message[];
  /**
   * Which message caused which of the rows' events: those from this index up to the next source's. Null: time caused
   * them, before the message that comes next.
   */
  sources: { message: Message | null; from: number }[];
  /** What it cost: `Budget`. */
  cost: number;
  /** By account, how much more that is than was charged when the batch was taken; negative: less. */
  charges: Map<number, number>;
};

const nothingStored: ReadonlyMap<number, StoredAlready> = new Map();

/**
 * Applies each device's messages in order until `maxCost` is spent (`Budget`), of which each account has its share; at
 * least one item. No I/O. Changes nothing but the queues' `cost`; the fragments stay as they are. `stored`: by device,
 * what is known to be in the history (`findStoredAlready`). `commands`: those that are answered; the plan changes them.
 */
export function planBatch(
  batch: DeviceBatch[],
  limits: ApplyLimits,
  maxCost: number,
  stored: ReadonlyMap<number, StoredAlready> = nothingStored,
  commands: AnsweredCommands = new Map(),
): Plan {
  const shares = shareOut(batch, maxCost);
  const plan: Plan = {
    rows: { ...noChanges(), commands },
    moved: [],
    evaluated: [],
    held: [],
    unchanged: [],
    due: [],
    after: [],
    fragments: [],
    orphaned: [],
    deviceBatches: [],
    postponed: [],
    split: [],
    sources: [],
    cost: 0,
    charges: new Map(),
  };
  const budget = new Budget(maxCost);
  const deps = { limits, budget, stored };
  // An account may exceed its share by one item and its evidence. The others still get theirs.
  const most = maxCost + maxCost / Math.max(2, shares.length);
  for (const { accountId, deviceBatches, charged, own, reserved } of shares) {
    const before = budget.spent;
    budget.limit = before + (before < most ? Math.max(own, maxCost - before - reserved) : 0);
    for (const deviceBatch of deviceBatches) {
      if (budget.spent >= budget.limit) plan.postponed.push(deviceBatch);
      else planDevice(deviceBatch, plan, deps);
    }
    plan.charges.set(accountId, budget.spent - before - charged);
  }
  plan.cost = budget.spent;
  return plan;
}

/** Makes a plan postpone the messages of devices that there was no room to read. */
export function postponeUnread(plan: Plan, unread: DeviceBatch[]): void {
  for (const deviceBatch of unread) {
    const { accountId, charged } = deviceBatch.queue;
    plan.postponed.push(deviceBatch);
    plan.charges.set(accountId, (plan.charges.get(accountId) ?? 0) - charged);
  }
}

/** An account's part of a batch. */
type Share = {
  accountId: number;
  deviceBatches: DeviceBatch[];
  /** What it will cost, before any firing. */
  demand: number;
  /** What it was charged when the batch was taken. */
  charged: number;
  /** `own`: what it may cost whatever earlier accounts used. `reserved`: what it has to leave for later ones. */
  own: number;
  reserved: number;
};

/**
 * Divides what a transaction may cost (`Budget`) among the batch's accounts, in the order of their turns, now that
 * their devices are known. An account may use what others do not ask for; what they do ask for, up to an equal share,
 * is reserved for them. With many accounts a share is at least a turn, and the last ones wait for the next transaction.
 */
function shareOut(batch: DeviceBatch[], maxCost: number): Share[] {
  const shares = listShares(batch);
  const least = Math.max(maxCost / turnsPerBatch, maxCost / shares.length);
  let reserved = 0;
  for (const { demand } of shares) reserved += Math.min(demand, least);
  for (const share of shares) {
    share.own = Math.min(share.demand, least);
    reserved -= share.own;
    share.reserved = reserved;
  }
  return shares;
}

function listShares(batch: DeviceBatch[]): Share[] {
  const shares = new Map<number, Share>();
  let last: Share | undefined;
  for (const deviceBatch of batch) {
    const { accountId, charged } = deviceBatch.queue;
    const known = last?.accountId === accountId ? last : shares.get(accountId);
    last = known ?? { accountId, deviceBatches: [], demand: 0, charged: 0, own: 0, reserved: 0 };
    if (!known) shares.set(accountId, last);
    last.deviceBatches.push(deviceBatch);
    last.charged += charged;
    last.demand += demandOf(deviceBatch);
  }
  return [...shares.values()];
}

/** What these messages will cost. A removed device has nothing to evaluate: each item costs 1. */
function demandOf({ queue, fragments }: DeviceBatch): number {
  let items = 0;
  for (const { size } of fragments) items += size;
  if (!queue.deviceState) return items;
  // The cost was set before the device's state was read.
  if (queue.cost === unreadCost) queue.cost = costOf(queue.deviceState);
  return items * queue.cost.perItem + queue.cost.once;
}

/** What planning a device's messages needs. `stored`: see `planBatch`. */
type PlanDeviceDeps = {
  limits: ApplyLimits;
  budget: Budget;
  stored: ReadonlyMap<number, StoredAlready>;
};

/** What was applied of a device's fragments. */
type AppliedFragments = {
  deviceState: DeviceState;
  /** How many; the last of them may be applied in part, and is then split. */
  done: number;
  split: [Fragment, Fragment] | null;
  /** The arrival of the last fragment that was looked at. */
  arrivedTs: WallMs;
  hasTick: boolean;
};

/** Applies one device's messages and adds the result to the plan, until the budget is spent; at least one item. */
function planDevice(deviceBatch: DeviceBatch, plan: Plan, deps: PlanDeviceDeps): void {
  const { queue, fragments } = deviceBatch;
  const before = deviceStateOf(queue);
  // Without fragments: an earlier attempt requeued them, and they come with another transaction.
  if (fragments.length === 0 || !before) {
    plan.orphaned.push(...fragments);
    plan.deviceBatches.push(deviceBatch);
    return;
  }
  const decided = countDecided(plan.rows);
  const applied = applyFragments(before, fragments, plan, deps);
  splitAtBudget(deviceBatch, applied, plan);
  const { hasTick } = applied;
  const deviceState = noteDue(before, applied, plan, deps);
  // A tick always raises the version, because it makes the due time that others remember invalid. Transactions of a
  // device that decide alarms or keep texts must run one after the other, so each of them writes the row.
  const isDecided = countDecided(plan.rows) !== decided;
  if (!hasTick && !isDecided && keepsRow(before, deviceState)) {
    (deviceState.watched.size > 0 ? plan.held : plan.unchanged).push(deviceState);
    if (deviceState !== before) plan.after.push({ queue, deviceState });
    return;
  }
  if (deviceState.current && deviceState.runtime && deviceState.runtime !== before.runtime)
    deps.budget.spent += evidenceCost(deviceState.current.profile, deviceState.runtime);
  (standsAs(before, deviceState) ? plan.evaluated : plan.moved).push(deviceState);
  plan.after.push({ queue, deviceState: { ...deviceState, version: deviceState.version + 1 } });
}

/** The device's state, at the connector where the device was last seen. */
function deviceStateOf({ deviceState, device }: DeviceQueue): DeviceState | null {
  if (!deviceState || deviceState.device.connectorId === device.connectorId) return deviceState;
  return { ...deviceState, device };
}

const countDecided = ({ signals, displays }: Changes) => signals.length + displays.size;

function applyFragments(
  before: DeviceState,
  fragments: Fragment[],
  { rows, sources }: Plan,
  { limits, budget, stored }: PlanDeviceDeps,
): AppliedFragments {
  const own = stored.get(before.device.deviceId) ?? null;
  let deviceState = before;
  let done = 0;
  let split: [Fragment, Fragment] | null = null;
  let arrivedTs = 0;
  let hasTick = false;
  while (done < fragments.length && !split && (done === 0 || !budget.isSpent)) {
    const fragment = fragments[done] as Fragment;
    const { message } = fragment;
    ({ arrivedTs } = message.uplink);
    const from = rows.events.length;
    const applied = apply(deviceState, fragment, rows, limits, budget, own);
    deviceState = applied.deviceState;
    const isBehind = applied.items === 0;
    if (rows.events.length > from) sources.push({ message: isBehind ? null : message, from });
    if (isBehind) break;
    done += 1;
    hasTick ||= fragment.content.kind === 'tick';
    if (applied.items < fragment.size) split = splitFragment(fragment, applied.items);
  }
  return { deviceState, done, split, arrivedTs, hasTick };
}

/** Divides a device's fragments into those in the plan and those that are postponed. */
function splitAtBudget(
  deviceBatch: DeviceBatch,
  { done, split }: AppliedFragments,
  plan: Plan,
): void {
  const { queue, fragments } = deviceBatch;
  if (done === fragments.length && !split) {
    plan.deviceBatches.push(deviceBatch);
    plan.fragments.push(...fragments);
    return;
  }
  const [first, rest] = split ?? [];
  const own = first ? [...fragments.slice(0, done - 1), first] : fragments.slice(0, done);
  const postponed = rest ? [rest, ...fragments.slice(done)] : fragments.slice(done);
  if (first) plan.split.push(first.message);
  plan.fragments.push(...own);
  plan.deviceBatches.push({ queue, fragments: own });
  plan.postponed.push({ queue, fragments: postponed });
}

/** Finds the device's next due time, if it may have changed. */
function noteDue(
  before: DeviceState,
  { deviceState, arrivedTs, hasTick: isTick }: AppliedFragments,
  plan: Plan,
  { budget, limits }: PlanDeviceDeps,
): DeviceState {
  const isSame = deviceState.runtime === before.runtime && deviceState.current === before.current;
  if (isSame && !isTick) return deviceState;
  const due = planDue(deviceState, { arrivedTs, isTick }, limits);
  budget.spent += due.cost + (isTick ? 1 : 0);
  if (due.row) plan.due.push(due.row);
  return due.deviceState;
}

/**
 * Whether a device's row stays as it is. The members left out here are not in the row: the newest values are in the
 * history, the watermarks and the rejections in tables of their own. Called for each device of each batch.
 */
function keepsRow(before: DeviceState, after: DeviceState): boolean {
  return (
    after === before ||
    (after.runtime === before.runtime &&
      after.evidenceLog === before.evidenceLog &&
      after.current === before.current &&
      after.pending === before.pending &&
      after.pendingTs === before.pendingTs &&
      after.dueTs === before.dueTs &&
      after.senses === before.senses &&
      after.watched === before.watched &&
      after.device === before.device &&
      after.version === before.version &&
      standsAs(before, after))
  );
}

/** Whether nothing in a device's row changed, except perhaps its evidence. */
function standsAs(before: DeviceState, after: DeviceState): boolean {
  return (
    after.place === before.place &&
    after.placeTs === before.placeTs &&
    after.given === before.given &&
    after.reported === before.reported &&
    after.answersProfiles === before.answersProfiles
  );
}

/** The messages of several accounts are divided into at most this many parts. */
const mostParts = 8;

/**
 * Divides a batch that failed into parts to store one after the other: by account, then in halves by device, by message
 * and by item. Null if a single item is left: that is the one that the database refuses.
 */
export function bisect(batch: DeviceBatch[]): DeviceBatch[][] | null {
  const [only] = batch;
  if (!only) return null;
  const accounts = [...Map.groupBy(batch, ({ queue }) => queue.accountId).values()];
  if (accounts.length > 1) {
    const size = Math.ceil(accounts.length / mostParts);
    const count = Math.ceil(accounts.length / size);
    return Array.from({ length: count }, (_, n) => accounts.slice(n * size, (n + 1) * size).flat());
  }
  if (batch.length > 1) return halves(batch);
  const { queue, fragments } = only;
  const [fragment] = fragments;
  if (fragments.length > 1) {
    const [first, second] = halves(fragments);
    return [[{ queue, fragments: first }], [{ queue, fragments: second }]];
  }
  if (!fragment || fragment.size < 2) return null;
  const [first, second] = halveFragment(fragment);
  return [[{ queue, fragments: [first] }], [{ queue, fragments: [second] }]];
}

function halves<T>(list: T[]): [T[], T[]] {
  return cut(list, Math.ceil(list.length / 2));
}

function cut<T>(list: T[], count: number): [T[], T[]] {
  return [list.slice(0, count), list.slice(count)];
}

function halveFragment(fragment: Fragment): [Fragment, Fragment] {
  fragment.message.open += 1;
  return splitFragment(fragment, Math.ceil(fragment.size / 2));
}

/** Splits a message after `count` items. The first part keeps its rejections. */
function splitFragment(
  { message, content, rejections }: Fragment,
  count: number,
): [Fragment, Fragment] {
  switch (content.kind) {
    case 'measurements': {
      const [first, second] = cut(content.items, count);
      return [
        newFragment(message, { ...content, items: first }, rejections),
        newFragment(message, { ...content, items: second }, []),
      ];
    }
    case 'events': {
      const [first, second] = cut(content.items, count);
      return [
        newFragment(message, { ...content, items: first }, rejections),
        newFragment(message, { ...content, items: second }, []),
      ];
    }
    case 'state':
    case 'profile-answer':
    case 'profile-request':
    case 'configuration':
    case 'time':
    case 'command-answer':
    case 'tick':
    case 'none':
      throw new Error(`a message of kind ${content.kind} is a single item`);
  }
}

/** Turns a single item that the database does not accept into a rejection. */
export function toRejection({ message, content, rejections }: Fragment, code: string): Fragment {
  const index = 'items' in content ? content.items[0]?.index : null;
  const reason = `The database rejected this item (${code}); only this entry keeps it.`;
  const path = index === null || index === undefined ? '' : `/${index}`;
  return {
    message,
    content: { kind: 'none' },
    size: 1,
    rejections: [...rejections, { reason: 'unstorable', message: reason, path }],
    isRefused: true,
  };
}
