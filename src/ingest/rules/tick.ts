import type { DeviceContext } from './device-context.ts';
import { isSurelyQuiet } from './due.ts';
import { broughtBack } from '../../engine/runtime.ts';
import { evaluatedProfile, MessageEvaluation } from './evaluate.ts';
import { findPendingDue, runPending } from './pending.ts';
import type { MessageScope } from './scope.ts';
import { aheadMs } from './sense-clock.ts';

/** The device after what time alone has completed; `isBehind`: there may be more, and the budget is spent. */
export type Ticked = { context: DeviceContext; isBehind: boolean };

/**
 * Evaluates what time alone has completed by the arrival of a message, or of a tick, under the profile that is
 * current then: before that message is looked at, as if each tick had come when it was due. Two states that send each
 * other back and forth on a silence of a second take a step for each second that nobody evaluated: what the budget
 * does not allow is left, and comes before anything else of the device.
 */
export function runTicks(
  context: DeviceContext,
  scope: MessageScope,
  { isTick }: { isTick: boolean },
): Ticked {
  const { arrivedTs } = scope;
  const device = isTick ? bringBack(context, scope) : context;
  const dueTs = findPendingDue(device, arrivedTs, scope.limits);
  if (dueTs === null || dueTs > arrivedTs) return runUntil(device, arrivedTs, scope);
  const before = runUntil(device, dueTs, scope);
  if (before.isBehind) return before;
  const running = runPending(before.context, { ...scope, arrivedTs: dueTs });
  return runUntil(running, arrivedTs, scope);
}

/**
 * The service's clock was ahead, and is right again: what the device's events collected meanwhile would be complete only
 * once time has come as far. Each device that was heard then gets a tick (src/clock/after-leap.ts).
 */
function bringBack(context: DeviceContext, { arrivedTs, limits }: MessageScope): DeviceContext {
  const profile = evaluatedProfile(context);
  if (!profile?.isTimed || !context.runtime) return context;
  const latestTs = arrivedTs + Math.max(0, limits.doubtSpanMs?.() ?? 0) + aheadMs;
  const runtime = broughtBack(profile, context.runtime, latestTs);
  return runtime === context.runtime ? context : { ...context, runtime };
}

function runUntil(context: DeviceContext, untilTs: number, scope: MessageScope): Ticked {
  const profile = evaluatedProfile(context);
  // Mostly nothing is: what waits was looked at when the message before this one was planned.
  if (!profile?.isTimed || isSurelyQuiet(context, profile, untilTs))
    return { context, isBehind: false };
  const evaluation = new MessageEvaluation(context, scope);
  const isBehind = !evaluation.runUntil(untilTs);
  return { context: evaluation.end(), isBehind };
}
