import type { Profile } from '../../engine/compile.ts';
import { findNextDue as findNextTick } from '../../engine/next-due.ts';
import { costs } from './model.ts';
import type { DeviceContext, EarliestDue } from './device-context.ts';
import { evaluatedProfile } from './evaluate.ts';
import { listeningUntil } from './listening-until.ts';
import { findPendingDue } from './pending.ts';
import type { ApplyLimits } from './scope.ts';

/** A device whose row among those that are due changes; `dueTs` null: it is removed. */
export type DueRow = { deviceId: number; accountId: number; dueTs: number | null };

/** `cost`: what it took to find out (`Budget`). */
type NextDue = { ts: number | null; earliest: EarliestDue | null; cost: number };

/** Between a tick and the next one, ms. */
const leastMs = 500;

/**
 * The device with its next due time, and how its row is to change: after a tick in any case, after messages
 * where the time is earlier. A row that is early costs a tick that finds nothing; one at each change of the
 * time would cost a write with each message. `cost`: what it took (`Budget`).
 */
export function planDue(
  after: DeviceContext,
  { arrivedTs, isTick }: { arrivedTs: number; isTick: boolean },
  limits: ApplyLimits,
): { context: DeviceContext; row: DueRow | null; cost: number } {
  const { ts: next, earliest: earliestDue, cost } = findDeviceDue(after, arrivedTs, limits);
  if (!isTick && (next === null || (after.dueTs !== null && next >= after.dueTs)))
    return { context: { ...after, earliestDue }, row: null, cost };
  const dueTs = next === null ? null : Math.max(next, arrivedTs + leastMs);
  const { deviceId, accountId } = after.device;
  return { context: { ...after, dueTs, earliestDue }, row: { deviceId, accountId, dueTs }, cost };
}

/** When the engine wants to be called for the device as it stands now, ms; null: nothing waits for time alone. */
function findDeviceDue(context: DeviceContext, nowTs: number, limits: ApplyLimits): NextDue {
  const { ts: current, ...found } = findCurrentDue(context, nowTs, limits);
  const pending = findPendingDue(context, nowTs, limits);
  const both = current !== null && pending !== null;
  return { ...found, ts: both ? Math.min(current, pending) : (current ?? pending) };
}

function findCurrentDue(context: DeviceContext, nowTs: number, limits: ApplyLimits): NextDue {
  const { runtime, device } = context;
  const profile = evaluatedProfile(context);
  if (!profile?.isTimed || !runtime) return { ts: null, earliest: null, cost: 0 };
  const next = findNextTick(profile, runtime, listeningUntil(nowTs, device, limits));
  const { purposes } = profile;
  const earliest = { purposes, runtime, ts: next.earliestTs };
  return { ts: next.ts, earliest, cost: next.cost * costs.cause };
}

/** Whether nothing can be due by then, as was found when the device was planned last. */
export function isSurelyQuiet(
  { runtime, earliestDue }: DeviceContext,
  profile: Profile,
  untilTs: number,
): boolean {
  if (earliestDue?.runtime !== runtime || earliestDue?.purposes !== profile.purposes) return false;
  return earliestDue.ts === null || earliestDue.ts > untilTs;
}
