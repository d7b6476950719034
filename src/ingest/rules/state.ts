import { isSamePlace, type Place } from '../../contract/place.ts';
import { enter, hasPlace } from '../../engine/runtime.ts';
import type { StateReport } from '../../contract/uplink.ts';
import type { DeviceContext, Reported } from './device-context.ts';
import { checkTime } from './validate.ts';
import { evaluatedProfile } from './evaluate.ts';
import { recordMove } from './record-event.ts';
import type { MessageScope } from './scope.ts';
import { signalMove } from './signal.ts';

/** A device reports its state: it counts unless it is older than the report before. */
export function applyState(
  context: DeviceContext,
  report: StateReport,
  scope: MessageScope,
): DeviceContext {
  const to: Place = { puId: report.puId, stId: report.stId };
  const ts = report.ts ?? scope.arrivedTs;
  const wrong = checkTime(ts, scope, scope.limits.eventMaxAgeMs, '/ts') ?? checkPlace(context, to);
  if (wrong) {
    scope.reject(wrong);
    return context;
  }
  const latestTs = scope.arrivedTs + scope.limits.maxAheadMs;
  const isStamped = report.ts === undefined;
  if (isOldReport(context.reported, { ...to, ts }, { isStamped, latestTs })) {
    scope.outcome?.repeat();
    return context;
  }
  scope.outcome?.store();
  const reported = { ...to, ts };
  // It stands there already: nothing that was collected there ends.
  if (isSamePlace(context.place, to)) return { ...context, placeTs: ts, reported };
  const profile = evaluatedProfile(context);
  recordMove(context, to, { evId: report.evId, ts }, scope);
  signalMove(context, { to, isReport: true }, scope);
  return {
    ...context,
    place: to,
    placeTs: ts,
    reported,
    runtime:
      profile && context.runtime
        ? enter(profile, context.runtime, to, scope.arrivedTs)
        : context.runtime,
  };
}

/** Redelivery changes nothing: the same report once more would undo what the service moved since. */
export function isOldReport(
  reported: Reported | null,
  report: Reported,
  { isStamped, latestTs }: { isStamped: boolean; latestTs: number },
): boolean {
  if (!reported) return false;
  if (report.ts === reported.ts && isSamePlace(reported, report)) return true;
  // A report without a time is the newest. A time that nobody could report now is of a clock that has been set back.
  return !isStamped && reported.ts <= latestTs && report.ts < reported.ts;
}

/** Where the service evaluates, a device can only be where the profile has a state. */
function checkPlace({ current }: DeviceContext, place: Place) {
  if (current?.engine !== 'service' || hasPlace(current.profile, place)) return null;
  const { puId, stId } = place;
  const message = `The current profile ${current.profile.pId} has no state ${stId} in a purpose ${puId}.`;
  return { reason: 'unknown-state' as const, message, path: '' };
}
