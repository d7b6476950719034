import { costOf, turnsPerBatch } from '../rules/cost.ts';
import type { Work } from '../queue/device-queue.ts';

/** An account's part of a batch. */
export type Share = {
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
export function shareOut(batch: Work[], maxCost: number): Share[] {
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
  if (queue.cost === costOf(null)) queue.cost = costOf(queue.context);
  return items * queue.cost.perItem + queue.cost.once;
}
