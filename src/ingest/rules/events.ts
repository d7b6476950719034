import type { FiredSignal } from '../../contract/alarm-signal.ts';
import { isSamePlace, type Place } from '../../contract/place.ts';
import { findEvent } from '../../engine/compile.ts';
import type { NewEvent, SenseEvent } from '../../contract/event.ts';
import type { EventReport, Item } from '../../contract/uplink.ts';
import { costs } from './model.ts';
import type { DeviceContext } from './device-context.ts';
import { checkSense, checkTime } from './validate.ts';
import type { Applied, MessageScope } from './scope.ts';
import { waitFor } from './perform-firing.ts';
import { describe, signal } from './signal.ts';

/**
 * Events that the device's own engine found: recorded, and their push and SMS go out. At least one, and as
 * many as the budget allows.
 */
export function applyEvents(
  before: DeviceContext,
  items: Item<EventReport>[],
  scope: MessageScope,
): Applied {
  let context = before;
  let applied = 0;
  while (applied < items.length && (applied === 0 || !scope.budget.isSpent)) {
    const { index, value } = items[applied++] as Item<EventReport>;
    const path = index === null ? '' : `/${index}`;
    const wrong = check(context, value, scope, path);
    if (wrong) scope.reject(wrong);
    else context = keep(context, value, scope);
  }
  return { context, items: Math.max(1, applied) };
}

function check(context: DeviceContext, { cause }: EventReport, scope: MessageScope, path: string) {
  const { eventMaxAgeMs } = scope.limits;
  const wrongTime = checkTime(cause.engine.ts, scope, eventMaxAgeMs, `${path}/cause/engine/ts`);
  if (wrongTime) return wrongTime;
  for (const [index, sense] of cause.senses.entries()) {
    const at = `${path}/cause/senses/${index}`;
    // A position arrives as 1 (inside) or 0, which the range of its sense says nothing about.
    const val = sense.lat === undefined ? sense.val : undefined;
    const wrong = checkSense(context.senses, sense.sId, val, at);
    if (wrong) return wrong;
  }
  return null;
}

/** Its key is what the device calls it, so that a redelivery is the same event. */
function keep(context: DeviceContext, { cause }: EventReport, scope: MessageScope): DeviceContext {
  const { rows, arrivedTs, limits } = scope;
  const { deviceId, accountId } = context.device;
  const { pId, puId, stId, evId, ts } = cause.engine;
  const key = `${pId}/${puId}/${stId}/${evId}`;
  const event: SenseEvent = { type: 'sense', ts, cause, arrivedTs };
  scope.budget.spent += costs.firing + costs.firingCause * cause.senses.length;
  const reported: NewEvent = { accountId, deviceId, key, event };
  rows.events.push(reported);
  scope.outcome?.report(reported);

  // Where the service evaluates, it finds these events itself.
  const { current } = context;
  if (current?.engine !== 'device' || current.profile.pId !== pId) return context;
  const { profile } = current;
  const found = describe(profile, { puId, stId, evId });
  if (!found) return context;
  const isFresh = ts >= arrivedTs - limits.ringMaxAgeMs;
  const movedTo = findEvent(profile, found.of, evId)?.target?.place ?? null;
  const from = cameFrom(context, found, movedTo, ts);
  const of = { isFirst: true, isFresh, isRecorded: true, from, movedTo };
  signal(context, { kind: 'fired', ...found, event, reportKey: key, ...of }, scope);
  return isFresh ? context : waitFor(context, found);
}

/**
 * Where the device stood when its engine found the event of that time. Its report of the state that the event led to may
 * come before or behind that of the event. An event of an ordinary state fires in that state; where one of a global
 * state did is known unless a report says by now where it led.
 */
function cameFrom(
  { place, reported }: DeviceContext,
  { of: { puId, stId }, isGlobal }: Pick<FiredSignal, 'of' | 'isGlobal'>,
  movedTo: Place | null,
  ts: number,
): Place {
  const isReported = reported !== null && isSamePlace(reported, movedTo) && reported.ts >= ts;
  return isGlobal && !isReported ? place : { puId, stId };
}
