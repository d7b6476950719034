import type { DeviceContext } from './device-context.ts';
import { isSurelyQuiet } from './due.ts';
import { evaluatedProfile } from './evaluated-profile.ts';
import { Evaluation } from './evaluation.ts';
import { findPendingDue, runPending } from './pending.ts';
import type { Scope } from './scope.ts';

/**
 * Evaluates what time alone has completed by the arrival of a message, or of a tick, under the profile that is
 * current then: before that message is looked at, as if each tick had come when it was due.
 */
export function runTicks(context: DeviceContext, scope: Scope): DeviceContext {
  // Mostly neither is there: this is asked with each message.
  if (!context.current?.profile.isTimed && !context.pending?.isTimed) return context;
  const { arrivedTs } = scope;
  const dueTs = findPendingDue(context, arrivedTs, scope.limits);
  if (dueTs === null || dueTs > arrivedTs) return runUntil(context, arrivedTs, scope);
  const before = runUntil(context, dueTs, scope);
  const running = runPending(before, { ...scope, arrivedTs: dueTs });
  return runUntil(running, arrivedTs, scope);
}

function runUntil(context: DeviceContext, untilTs: number, scope: Scope): DeviceContext {
  const profile = evaluatedProfile(context);
  // Mostly nothing is: what waits was looked at when the message before this one was planned.
  if (!profile?.isTimed || isSurelyQuiet(context, profile, untilTs)) return context;
  const evaluation = new Evaluation(context, scope);
  evaluation.runUntil(untilTs);
  return evaluation.end();
}
