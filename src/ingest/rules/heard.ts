import type { DeviceContext } from './device-context.ts';
import type { MessageScope } from './scope.ts';
import { signal } from './signal.ts';

/**
 * A sense was heard at `t`: where an alarm of the device waits for a fresh measurement of it, alarms are told.
 * To be called when the measurement was evaluated: it may have ended the alarm.
 */
export function hear(
  context: DeviceContext,
  { sId, t }: { sId: string; t: number },
  scope: MessageScope,
): DeviceContext {
  const { waitingSenses } = context;
  const isFresh = t >= scope.arrivedTs - scope.limits.ringMaxAgeMs;
  if (!isFresh || !waitingSenses?.has(sId)) return context;
  signal(context, { kind: 'heard', sIds: [sId] }, scope);
  const left = new Set(waitingSenses);
  left.delete(sId);
  return { ...context, waitingSenses: left.size > 0 ? left : null };
}
