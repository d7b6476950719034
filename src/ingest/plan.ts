import { apply } from './apply.ts';
import type { DeviceContext } from './context.ts';
import type { Unit } from './entry.ts';
import type { Lane, Work } from './lanes.ts';
import { emptyRows } from './rows.ts';
import type { Rows } from './rows.ts';
import type { ApplyLimits } from './scope.ts';

/** One transaction, computed and not yet written. */
export type Plan = {
  rows: Rows;
  /** Devices that stand elsewhere, as they stand afterwards; `version` is the one they were read at. */
  moved: DeviceContext[];
  /** Devices that stay where they are, with other evidence. */
  evaluated: DeviceContext[];
  /** Devices whose row stays, and must still be as it was read; with a profile, and without. */
  held: DeviceContext[];
  unchanged: DeviceContext[];
  /** What each lane knows after the commit. */
  after: { lane: Lane; context: DeviceContext }[];
  settled: Unit[];
  /** Messages of devices that are no more. */
  orphaned: Unit[];
};

/** Applies each device's messages in their order. Pure: the lanes' contexts are read, not written. */
export function planBatch(batch: Work[], limits: ApplyLimits): Plan {
  const plan: Plan = {
    rows: emptyRows(),
    moved: [],
    evaluated: [],
    held: [],
    unchanged: [],
    after: [],
    settled: [],
    orphaned: [],
  };
  for (const { lane, units } of batch) {
    const before = lane.context;
    if (!before) {
      plan.orphaned.push(...units);
      continue;
    }
    let context = before;
    for (const unit of units) context = apply(context, unit, plan.rows, limits);
    plan.settled.push(...units);
    if (keepsRow(before, context)) {
      (context.watched.size > 0 ? plan.held : plan.unchanged).push(context);
      if (context !== before) plan.after.push({ lane, context });
    } else {
      (standsAs(before, context) ? plan.evaluated : plan.moved).push(context);
      plan.after.push({ lane, context: { ...context, version: context.version + 1 } });
    }
  }
  return plan;
}

/** Whether a device's row stays: nothing changed, or only what its senses' newest is, which the history has. */
function keepsRow(before: DeviceContext, after: DeviceContext): boolean {
  if (after === before) return true;
  const members = Object.keys(after) as (keyof DeviceContext)[];
  return members.every((member) => member === 'seen' || after[member] === before[member]);
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
