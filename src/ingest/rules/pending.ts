import { findNextDue } from '../../engine/next-due.ts';
import { startRuntime } from '../../engine/runtime.ts';
import type { DeviceContext } from './device-context.ts';
import { listeningUntil } from './listening-until.ts';
import { becomeCurrent } from './profile.ts';
import type { ApplyLimits, MessageScope } from './scope.ts';

/** Whether the device runs what is pending from its next message, or tick, on: it never asked for a profile. */
const isPlain = ({ pending, answersProfiles }: DeviceContext) => pending && !answersProfiles;

/**
 * What a plain sensor has pending becomes current with its message, or with its tick. Silences count from the
 * installation.
 */
export function runPending(context: DeviceContext, scope: MessageScope): DeviceContext {
  const { pending, pendingTs } = context;
  if (!pending || !isPlain(context)) return context;
  const sinceTs = Math.min(pendingTs ?? scope.arrivedTs, scope.arrivedTs);
  return becomeCurrent(context, pending, {}, scope, sinceTs);
}

/** When time alone makes a plain sensor's pending profile current, ms; null: only a message does. */
export function findPendingDue(
  context: DeviceContext,
  nowTs: number,
  limits: ApplyLimits,
): number | null {
  const { pending, pendingTs, device } = context;
  if (!pending?.isTimed || pendingTs === null || !isPlain(context)) return null;
  const runtime = startRuntime(pending, pendingTs);
  return findNextDue(pending, runtime, listeningUntil(nowTs, device, limits)).ts;
}
