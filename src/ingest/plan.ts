import { apply } from './apply.ts';
import type { ApplyLimits } from './apply.ts';
import type { DeviceContext } from './context.ts';
import type { Lane, Unit, Work } from './lanes.ts';
import { emptyRows } from './rows.ts';
import type { Rows } from './rows.ts';

/** One transaction, computed and not yet written. */
export type Plan = {
  rows: Rows;
  /** Devices whose row changes, as they stand afterwards; `version` is the one they were read at. */
  changed: DeviceContext[];
  /** Devices whose row stays, and must still be as it was read. */
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
    changed: [],
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
    if (context === before) plan.unchanged.push(context);
    else {
      plan.changed.push(context);
      plan.after.push({ lane, context: { ...context, version: context.version + 1 } });
    }
  }
  return plan;
}
