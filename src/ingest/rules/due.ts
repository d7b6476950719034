import type { Profile } from '../../engine/compile.ts';
import { findNextDue as findNextTick } from '../../engine/next-due.ts';
import { costs } from './cost.ts';
import type { DeviceContext, EarliestDue } from './device-context.ts';
import { evaluatedProfile } from './evaluated-profile.ts';
import { listeningUntil } from './listening-until.ts';
import { findPendingDue } from './pending.ts';
import type { ApplyLimits } from './scope.ts';

/** A device whose row among those that are due changes; `dueTs` null: it is removed. */
export type DueRow = { deviceId: number; accountId: number; dueTs: number | null };

/** `cost`: what it took to find out (`Budget`). */
type NextDue = { ts: number | null; earliest: EarliestDue | null; cost: number };

/** When the engine wants to be called for the device as it stands now, ms; null: nothing waits for time alone. */
export function findDeviceDue(context: DeviceContext, nowTs: number, limits: ApplyLimits): NextDue {
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
