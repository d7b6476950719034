import { Evaluator } from '../../engine/evaluator.ts';
import type { DeviceContext } from './device-context.ts';
import { evaluatedProfile } from './evaluated-profile.ts';
import { listeningUntil } from './listening-until.ts';
import { findPendingDue } from './pending.ts';
import type { ApplyLimits } from './scope.ts';

/** A device whose row among those that are due changes; `dueTs` null: it is removed. */
export type DueRow = { deviceId: number; accountId: number; dueTs: number | null };

/** When the engine wants to be called for the device as it stands now, ms; null: nothing waits for time alone. */
export function findNextDue(
  context: DeviceContext,
  nowTs: number,
  limits: ApplyLimits,
): number | null {
  const current = findCurrentDue(context, nowTs, limits);
  const pending = findPendingDue(context, nowTs, limits);
  return current === null || pending === null ? (current ?? pending) : Math.min(current, pending);
}

function findCurrentDue(context: DeviceContext, nowTs: number, limits: ApplyLimits): number | null {
  const { runtime, device } = context;
  const profile = evaluatedProfile(context);
  if (!profile?.isTimed || !runtime) return null;
  return new Evaluator(profile, runtime, listeningUntil(nowTs, device, limits)).nextDueTs();
}
