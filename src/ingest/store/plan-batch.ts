import { apply } from '../rules/apply.ts';
import { Budget, evidenceCost } from '../rules/cost.ts';
import type { DeviceContext } from '../rules/device-context.ts';
import type { Message, Unit } from '../rules/message.ts';
import type { DeviceQueue, Work } from '../queue/device-queue.ts';
import { noChanges } from '../rules/changes.ts';
import type { Changes } from '../rules/changes.ts';
import type { DueRow } from '../rules/due.ts';
import type { ApplyLimits } from '../rules/scope.ts';
import { planDue, tickedTs } from './plan-due.ts';
import type { StoredAlready } from '../rules/stored-already.ts';
import { shareOut } from './share-out.ts';
import { divideUnit } from './split.ts';
import { keepsRow, standsAs } from './stands-as.ts';

/** One transaction, computed and not yet written. */
export type Plan = {
  rows: Changes;
  /** Devices that stand elsewhere, as they stand afterwards; `version` is the one they were read at. */
  moved: DeviceContext[];
  /** Devices that stay where they are, with other evidence. */
  evaluated: DeviceContext[];
  /** Devices whose row stays, and must still be as it was read; with a profile, and without. */
  held: DeviceContext[];
  unchanged: DeviceContext[];
  /** When devices are due next, where that changes. */
  due: DueRow[];
  /** What each queue knows after the commit. */
  after: { queue: DeviceQueue; context: DeviceContext }[];
  /** The messages, or parts of them, that are stored with it. */
  units: Unit[];
  /** Messages of devices that are no more. */
  orphaned: Unit[];
  /** What of the batch it holds, and what it has no room for. */
  works: Work[];
  postponed: Work[];
  /** The messages that were divided: units of them are in both. */
  divided: Message[];
  /**
   * Which of the rows' events are of which message: from this place on, up to the next one's; null: time brought
   * them, and the message that it was noticed with waits behind them.
   */
  sources: { message: Message | null; from: number }[];
  /** What it cost: `Budget`. */
  cost: number;
  /** By account, how much more that is than it was charged when the batch was taken; below zero: less. */
  charges: Map<number, number>;
};

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
  const shares = shareOut(batch, maxCost);
  // Beyond its part an account goes by an item and its evidence: others have their own all the same.
  const most = maxCost + maxCost / Math.max(2, shares.length);
  for (const { accountId, works, charged, own, reserved } of shares) {
    const before = budget.spent;
    budget.limit = before + (before < most ? Math.max(own, maxCost - before - reserved) : 0);
    for (const work of works) {
      if (budget.isSpent) plan.postponed.push(work);
      else planDevice(work, plan, limits, budget, stored);
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

function planDevice(
  work: Work,
  plan: Plan,
  limits: ApplyLimits,
  budget: Budget,
  stored: ReadonlyMap<number, StoredAlready>,
): void {
  const { queue, units } = work;
  const before = contextOf(queue);
  // Its messages were put back when the transaction was tried before, and come with another one.
  if (units.length === 0) {
    plan.works.push(work);
    return;
  }
  if (!before) {
    plan.orphaned.push(...units);
    plan.works.push(work);
    return;
  }
  const own = stored.get(before.device.deviceId) ?? null;
  let context = before;
  let done = 0;
  let divided: [Unit, Unit] | null = null;
  let isBehind = false;
  let { arrivedTs } = (units[0] as Unit).message.uplink;
  const decided = countDecided(plan.rows);
  while (done < units.length && !divided && !isBehind && (done === 0 || !budget.isSpent)) {
    const unit = units[done] as Unit;
    const { message } = unit;
    ({ arrivedTs } = message.uplink);
    const from = plan.rows.events.length;
    const applied = apply(context, unit, plan.rows, limits, budget, own);
    context = applied.context;
    isBehind = applied.items === 0;
    if (plan.rows.events.length > from)
      plan.sources.push({ message: isBehind ? null : message, from });
    if (isBehind) continue;
    done += 1;
    if (applied.items < unit.size) divided = divideUnit(unit, applied.items);
  }
  divide(work, done, divided, plan);
  const ticked = tickedTs(units.slice(0, done));
  const due = planDue(before, context, { arrivedTs, isTick: ticked !== null }, limits);
  context = due.context;
  budget.spent += due.cost;
  if (due.row) plan.due.push(due.row);
  // A tick raises the version whatever it finds: what others remember of the device's due time is void.
  if (ticked !== null) budget.spent += 1;
  // Where alarms are decided, or texts kept, one transaction of the device does so after the other: each writes its row.
  else if (countDecided(plan.rows) === decided && keepsRow(before, context)) {
    (context.watched.size > 0 ? plan.held : plan.unchanged).push(context);
    if (context !== before) plan.after.push({ queue, context });
    return;
  }
  if (context.current && context.runtime && context.runtime !== before.runtime)
    budget.spent += evidenceCost(context.current.profile, context.runtime);
  (standsAs(before, context) ? plan.evaluated : plan.moved).push(context);
  plan.after.push({ queue, context: { ...context, version: context.version + 1 } });
}

const countDecided = ({ signals, displays }: Changes) => signals.length + displays.size;

/** What is known of the device, at the connector where it was seen last. */
function contextOf({ context, device }: DeviceQueue): DeviceContext | null {
  if (!context || context.device.connectorId === device.connectorId) return context;
  return { ...context, device };
}

/** Divides a device's units into those that the plan holds, and those that are postponed. */
function divide(work: Work, done: number, divided: [Unit, Unit] | null, plan: Plan): void {
  const { queue, units } = work;
  if (done === units.length && !divided) {
    plan.works.push(work);
    plan.units.push(...units);
    return;
  }
  const [first, rest] = divided ?? [];
  const own = first ? [...units.slice(0, done - 1), first] : units.slice(0, done);
  const postponed = rest ? [rest, ...units.slice(done)] : units.slice(done);
  if (first) plan.divided.push(first.message);
  plan.units.push(...own);
  plan.works.push({ queue, units: own });
  plan.postponed.push({ queue, units: postponed });
}
