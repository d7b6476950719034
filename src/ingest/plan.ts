import type { DeviceQueue, Work } from './queue/device-queue.ts';
import { apply } from './rules/apply.ts';
import type { Changes } from './rules/changes.ts';
import type { DeviceContext } from './rules/device-context.ts';
import { planDue } from './rules/due.ts';
import type { Unit } from './rules/message.ts';
import { type Budget, evidenceCost } from './rules/model.ts';
import type { ApplyLimits } from './rules/scope.ts';
import type { StoredAlready } from './rules/stored-already.ts';
import type { Plan } from './store/plan.ts';
import { divideUnit } from './store/split.ts';

/** What a device's messages are planned with; `stored` as of `planBatch`. */
export type PlanDeviceDeps = {
  limits: ApplyLimits;
  budget: Budget;
  stored: ReadonlyMap<number, StoredAlready>;
};

/** What was applied of a device's units. */
type AppliedUnits = {
  context: DeviceContext;
  /** How many; of the last of them perhaps a part: then it was divided. */
  done: number;
  divided: [Unit, Unit] | null;
  /** Of the last one that was looked at. */
  arrivedTs: number;
  hasTick: boolean;
};

/** Adds to the plan what becomes of one device's messages, until the budget is spent; at least one item. */
export function planDevice(work: Work, plan: Plan, deps: PlanDeviceDeps): void {
  const { queue, units } = work;
  const before = contextOf(queue);
  // Its messages were put back when the transaction was tried before, and come with another one.
  if (units.length === 0 || !before) {
    plan.orphaned.push(...units);
    plan.works.push(work);
    return;
  }
  const decided = countDecided(plan.rows);
  const applied = applyUnits(before, units, plan, deps);
  divide(work, applied, plan);
  const { hasTick } = applied;
  const context = noteDue(before, applied, plan, deps);
  // A tick raises the version whatever it finds: what others remember of the device's due time is void. Where alarms
  // are decided, or texts kept, one transaction of the device does so after the other: each writes its row.
  const isDecided = countDecided(plan.rows) !== decided;
  if (!hasTick && !isDecided && keepsRow(before, context)) {
    (context.watched.size > 0 ? plan.held : plan.unchanged).push(context);
    if (context !== before) plan.after.push({ queue, context });
    return;
  }
  if (context.current && context.runtime && context.runtime !== before.runtime)
    deps.budget.spent += evidenceCost(context.current.profile, context.runtime);
  (standsAs(before, context) ? plan.evaluated : plan.moved).push(context);
  plan.after.push({ queue, context: { ...context, version: context.version + 1 } });
}

/** What is known of the device, at the connector where it was seen last. */
function contextOf({ context, device }: DeviceQueue): DeviceContext | null {
  if (!context || context.device.connectorId === device.connectorId) return context;
  return { ...context, device };
}

const countDecided = ({ signals, displays }: Changes) => signals.length + displays.size;

function applyUnits(
  before: DeviceContext,
  units: Unit[],
  { rows, sources }: Plan,
  { limits, budget, stored }: PlanDeviceDeps,
): AppliedUnits {
  const own = stored.get(before.device.deviceId) ?? null;
  let context = before;
  let done = 0;
  let divided: [Unit, Unit] | null = null;
  let arrivedTs = 0;
  let hasTick = false;
  while (done < units.length && !divided && (done === 0 || !budget.isSpent)) {
    const unit = units[done] as Unit;
    const { message } = unit;
    ({ arrivedTs } = message.uplink);
    const from = rows.events.length;
    const applied = apply(context, unit, rows, limits, budget, own);
    context = applied.context;
    const isBehind = applied.items === 0;
    if (rows.events.length > from) sources.push({ message: isBehind ? null : message, from });
    if (isBehind) break;
    done += 1;
    hasTick ||= unit.content.kind === 'tick';
    if (applied.items < unit.size) divided = divideUnit(unit, applied.items);
  }
  return { context, done, divided, arrivedTs, hasTick };
}

/** Divides a device's units into those that the plan holds, and those that are postponed. */
function divide(work: Work, { done, divided }: AppliedUnits, plan: Plan): void {
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

/** The device with its next due time, where that may be another one than before. */
function noteDue(
  before: DeviceContext,
  { context, arrivedTs, hasTick: isTick }: AppliedUnits,
  plan: Plan,
  { budget, limits }: PlanDeviceDeps,
): DeviceContext {
  const isSame = context.runtime === before.runtime && context.current === before.current;
  if (isSame && !isTick) return context;
  const due = planDue(context, { arrivedTs, isTick }, limits);
  budget.spent += due.cost + (isTick ? 1 : 0);
  if (due.row) plan.due.push(due.row);
  return due.context;
}

/**
 * Whether a device's row stays. Other members are kept elsewhere: what its senses' newest is in the history, and
 * in a table of their clocks; how many rejections it had. Asked of each device of each batch.
 */
function keepsRow(before: DeviceContext, after: DeviceContext): boolean {
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

/** Whether a device's row has nothing new to keep, but perhaps its evidence. */
function standsAs(before: DeviceContext, after: DeviceContext): boolean {
  return (
    after.place === before.place &&
    after.placeTs === before.placeTs &&
    after.reported === before.reported &&
    after.answersProfiles === before.answersProfiles
  );
}
