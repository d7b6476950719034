import type { Place } from '../../contract/place.ts';
import { enter, hasPlace } from '../../engine/runtime.ts';
import type { StateReport } from '../../contract/uplink.ts';
import type { DeviceContext, Reported } from './device-context.ts';
import { checkTime } from './validate.ts';
import { recordMove } from './record-event.ts';
import type { Scope } from './scope.ts';

/** A device reports its state: it counts unless it is older than the report before. */
export function applyState(
  context: DeviceContext,
  report: StateReport,
  scope: Scope,
): DeviceContext {
  const to: Place = { puId: report.puId, stId: report.stId };
  const ts = report.ts ?? scope.arrivedTs;
  const wrong = checkTime(ts, scope, scope.limits.eventMaxAgeMs, '/ts') ?? checkPlace(context, to);
  if (wrong) {
    scope.reject(wrong);
    return context;
  }
  if (isOld(context.reported, { ...to, ts })) return context;
  recordMove(context, to, { evId: report.evId ?? 0, ts }, scope);
  return {
    ...context,
    place: to,
    placeTs: ts,
    reported: { ...to, ts },
    runtime:
      context.current?.engine === 'service' && context.runtime
        ? enter(context.current.profile, context.runtime, to, scope.arrivedTs)
        : context.runtime,
  };
}

/** Redelivery changes nothing: the same report once more would undo what the service moved since. */
function isOld(reported: Reported | null, report: Reported): boolean {
  if (!reported) return false;
  const again = reported.puId === report.puId && reported.stId === report.stId;
  return report.ts < reported.ts || (report.ts === reported.ts && again);
}

/** Where the service evaluates, a device can only be where the profile has a state. */
function checkPlace({ current }: DeviceContext, place: Place) {
  if (current?.engine !== 'service' || hasPlace(current.profile, place)) return null;
  const { puId, stId } = place;
  const message = `The current profile ${current.profile.pId} has no state ${stId} in a purpose ${puId}.`;
  return { reason: 'unknown-state' as const, message, path: '' };
}
