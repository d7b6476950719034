import { Evaluator } from '../../engine/evaluator.ts';
import type { DeviceContext } from './device-context.ts';
import { evaluatedProfile } from './evaluated-profile.ts';
import { findPendingDue } from './pending.ts';
import type { ApplyLimits } from './scope.ts';

/** A device whose row among those that are due changes; `dueTs` null: it is removed. */
export type DueRow = { deviceId: number; accountId: number; dueTs: number | null };

/** When the engine wants to be called for the device as it stands, ms; null: nothing waits for time alone. */
export function findNextDue(context: DeviceContext, limits: ApplyLimits): number | null {
  const current = findCurrentDue(context, limits);
  const pending = findPendingDue(context, limits);
  return current === null || pending === null ? (current ?? pending) : Math.min(current, pending);
}

function findCurrentDue(context: DeviceContext, { listeningOf }: ApplyLimits): number | null {
  const { runtime, device } = context;
  const profile = evaluatedProfile(context);
  if (!profile?.isTimed || !runtime) return null;
  return new Evaluator(profile, runtime, listeningOf?.(device)).nextDueTs();
}
