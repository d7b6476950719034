import type { Work } from '../queue/device-queue.ts';
import { Budget, costOf, turnsPerBatch, unreadCost } from '../rules/model.ts';
import { noChanges } from '../rules/changes.ts';
import type { ApplyLimits } from '../rules/scope.ts';
import type { StoredAlready } from '../rules/stored-already.ts';
import type { Plan } from './plan.ts';
import { planDevice } from '../plan.ts';

const nothingStored: ReadonlyMap<number, StoredAlready> = new Map();

/**
 * Applies each device's messages in their order until `maxCost` is spent (`Budget`), of which each account
 * has its share; at least one item. No I/O: of the queues only what a device costs is noted, and the units stay as they are. `stored`: what is
 * known of what the history has already, by device (`findStoredAlready`).
 */
export function planBatch(
  batch: Work[],
  limits: ApplyLimits,
  maxCost: number,
  stored: ReadonlyMap<number, StoredAlready> = nothingStored,
): Plan {
  const shares = shareOut(batch, maxCost);
  const plan: Plan = {
    rows: noChanges(),
    moved: [],
    evaluated: [],
    held: [],
    unchanged: [],
    due: [],
    after: [],
    units: [],
    orphaned: [],
    works: [],
    postponed: [],
    divided: [],
    sources: [],
    cost: 0,
    charges: new Map(),
  };
  const budget = new Budget(maxCost);
  const deps = { limits, budget, stored };
  // Beyond its part an account goes by an item and its evidence: others have their own all the same.
  const most = maxCost + maxCost / Math.max(2, shares.length);
  for (const { accountId, works, charged, own, reserved } of shares) {
    const before = budget.spent;
    budget.limit = before + (before < most ? Math.max(own, maxCost - before - reserved) : 0);
    for (const work of works) {
      if (budget.spent >= budget.limit) plan.postponed.push(work);
      else planDevice(work, plan, deps);
    }
    plan.charges.set(accountId, budget.spent - before - charged);
  }
  plan.cost = budget.spent;
  return plan;
}

/** Has a plan postpone messages of devices for which there was no room to be read. */
export function postponeUnread(plan: Plan, unread: Work[]): void {
  for (const work of unread) {
    const { accountId, charged } = work.queue;
    plan.postponed.push(work);
    plan.charges.set(accountId, (plan.charges.get(accountId) ?? 0) - charged);
  }
}

/** An account's part of a batch. */
type Share = {
  accountId: number;
  works: Work[];
  /** What it will cost, before any firing. */
  demand: number;
  /** What it was charged when the batch was taken. */
  charged: number;
  /** What it may cost whatever those before it did, and what those behind it are to find left. */
  own: number;
  reserved: number;
};

/**
 * Divides what a transaction may cost (`Budget`) among the batch's accounts, in the order of their turns,
 * now that their devices are known. Each may use what the others do not ask for, but what those do ask
 * for, up to an equal share, is reserved for them. Where accounts are many a share is a turn at least: then
 * the last ones wait for the next transaction.
 */
function shareOut(batch: Work[], maxCost: number): Share[] {
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

function listShares(batch: Work[]): Share[] {
  const shares = new Map<number, Share>();
  let last: Share | undefined;
  for (const work of batch) {
    const { accountId, charged } = work.queue;
    const known = last?.accountId === accountId ? last : shares.get(accountId);
    last = known ?? { accountId, works: [], demand: 0, charged: 0, own: 0, reserved: 0 };
    if (!known) shares.set(accountId, last);
    last.works.push(work);
    last.charged += charged;
    last.demand += demandOf(work);
  }
  return [...shares.values()];
}

/** What the work will cost. A removed device has nothing to evaluate: each item costs 1. */
function demandOf({ queue, units }: Work): number {
  let items = 0;
  for (const { size } of units) items += size;
  if (!queue.context) return items;
  // The cost was set before the device's state was read.
  if (queue.cost === unreadCost) queue.cost = costOf(queue.context);
  return items * queue.cost.perItem + queue.cost.once;
}
