import { Evaluator } from '../../engine/evaluator.ts';
import type { DeviceContext } from './device-context.ts';
import type { ApplyLimits } from './scope.ts';

/** A device whose row among those that are due changes; `dueTs` null: it is removed. */
export type DueRow = { deviceId: number; accountId: number; dueTs: number | null };

/** When the engine wants to be called for the device as it stands, ms; null: nothing waits for time alone. */
export function findNextDue(
  { device, current, runtime }: DeviceContext,
  { listeningOf }: ApplyLimits,
): number | null {
  if (!current || !runtime) return null;
  return new Evaluator(current.profile, runtime, listeningOf?.(device)).nextDueTs();
}
