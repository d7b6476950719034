import { evaluate } from '../core/evaluate.ts';
import type { Firing, Transition } from '../core/evaluator.ts';
import type { Measurement } from '../core/measurement.ts';
import { notice } from '../core/seen.ts';
import type { Item, SentMeasurement } from '../core/uplink.ts';
import type { DeviceContext } from './context.ts';
import { judgeSense, judgeTime } from './judge.ts';
import { recordEvent } from './record-event.ts';
import type { Scope } from './scope.ts';

/** Stores what was measured, then evaluates it where the service runs the profile. */
export function applyMeasurements(
  before: DeviceContext,
  items: Item<SentMeasurement>[],
  scope: Scope,
): DeviceContext {
  let context = before;
  for (const { index, value } of items) {
    const path = index === null ? '' : `/${index}`;
    const measurement: Measurement = {
      sId: value.sId,
      val: value.val,
      ts: value.ts ?? scope.arrivedTs,
    };
    const wrong =
      judgeSense(context.senses, measurement.sId, measurement.val, path) ??
      judgeTime(measurement.ts, scope, scope.limits.measurementMaxAgeMs, `${path}/ts`);
    if (wrong) scope.reject(wrong);
    else context = applyMeasurement(context, measurement, scope);
  }
  return context;
}

function applyMeasurement(
  context: DeviceContext,
  measurement: Measurement,
  scope: Scope,
): DeviceContext {
  const { sId, val, ts } = measurement;
  const { deviceId } = context.device;
  scope.rows.measurements.push(
    typeof val === 'number'
      ? { deviceId, sId, ts, val, long: undefined }
      : { deviceId, sId, ts, val: val.lat, long: val.long },
  );

  const seen = context.watched.has(sId) ? notice(context.seen, measurement) : null;
  return seen ? judge({ ...context, seen }, measurement, scope) : context;
}

/** What is news to the device's purposes, where the service evaluates them. */
function judge(context: DeviceContext, measurement: Measurement, scope: Scope): DeviceContext {
  const { current, runtime } = context;
  if (current?.engine !== 'service' || !runtime) return context;
  const evaluation = evaluate(current.profile, runtime, measurement);
  if (evaluation.runtime === runtime) return context;
  for (const firing of evaluation.firings) perform(context, firing, scope);
  const { transition } = evaluation;
  const moved = transition ? move(context, transition, measurement.ts, scope) : context;
  return { ...moved, runtime: evaluation.runtime };
}

/** The actions of an event that fired, as rows and effects. */
function perform(context: DeviceContext, firing: Firing, scope: Scope): void {
  const { event, actions, name } = firing;
  // What a backlog tells of is history by now: recorded, but no reason to ring.
  const isStale = event.ts < scope.arrivedTs - scope.limits.ringMaxAgeMs;
  const rings = firing.ring && !isStale;
  const told = firing.ring && isStale ? { ...event, notified: false } : event;
  if (firing.record) recordEvent(context, told, scope);
  if (rings) {
    scope.rows.rings.push({ device: context.device, event, actions, name, key: undefined });
  }
  if (actions.display?.showText !== undefined) {
    const payload = { text: actions.display.showText, ts: event.ts };
    const { uuid } = context.device;
    scope.rows.effects.push({ kind: 'down', uuid, message: { topic: 'display', payload } });
  }
}

function move(
  context: DeviceContext,
  { to, event }: Transition,
  ts: number,
  scope: Scope,
): DeviceContext {
  if (event) recordEvent(context, event, scope);
  const { uuid } = context.device;
  const message = { topic: 'state' as const, payload: { ...to, ts } };
  scope.rows.effects.push({ kind: 'down', uuid, message });
  return { ...context, place: to, placeTs: ts };
}
