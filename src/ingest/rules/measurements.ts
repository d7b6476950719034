import { messagesOf } from '../../contract/actions/actions.ts';
import type { Measurement } from '../../contract/measurement.ts';
import type { Item, SentMeasurement } from '../../contract/uplink.ts';
import { Evaluator } from '../../engine/evaluator.ts';
import { newestAfter } from '../../engine/last-seen.ts';
import type { Firing, Transition } from '../../engine/outcome.ts';
import type { Place } from '../../contract/place.ts';
import { costs } from './cost.ts';
import type { DeviceContext } from './device-context.ts';
import { logAfter } from './evidence-log.ts';
import { recordEvent } from './record-event.ts';
import type { Applied, Scope } from './scope.ts';
import { describe, signal } from './signal.ts';
import { checkSense, checkTime } from './validate.ts';

/**
 * Stores what was measured, then evaluates it where the service runs the profile. At least one item, and
 * as many as the budget allows.
 */
export function applyMeasurements(
  before: DeviceContext,
  items: Item<SentMeasurement>[],
  scope: Scope,
): Applied {
  const { senses, watched } = before;
  const { deviceId } = before.device;
  const { limits, arrivedTs, budget, rows } = scope;
  const evaluation = new Evaluation(before, scope);
  let { seen } = before;
  let applied = 0;
  while (applied < items.length && (applied === 0 || !budget.isSpent)) {
    const { index, value } = items[applied++] as Item<SentMeasurement>;
    const { sId, val, ts = arrivedTs } = value;
    const path = index === null ? '' : `/${index}`;
    const wrong =
      checkSense(senses, sId, val, path) ??
      checkTime(ts, scope, limits.measurementMaxAgeMs, `${path}/ts`);
    if (wrong) {
      scope.reject(wrong);
      continue;
    }
    budget.spent += 1;
    const measurement: Measurement = { sId, val, ts };
    rows.measurements.push(
      typeof val === 'number'
        ? { deviceId, sId, ts, val, long: undefined }
        : { deviceId, sId, ts, val: val.lat, long: val.long },
    );
    const number = watched.get(sId);
    const newest = number === undefined ? null : newestAfter(seen.get(number), measurement);
    if (number === undefined || !newest) continue;
    seen = seen.with(number, newest);
    evaluation.measure(measurement);
  }
  const context = evaluation.end();
  return {
    context: seen === before.seen ? context : { ...context, seen },
    items: Math.max(1, applied),
  };
}

/** The evaluation of one message's measurements, where the service evaluates them for its device. */
class Evaluation {
  readonly #scope: Scope;
  readonly #evaluator: Evaluator | null;
  readonly #before: DeviceContext;
  readonly #evaluated: Measurement[] = [];
  #context: DeviceContext;
  #hasFired = false;

  constructor(context: DeviceContext, scope: Scope) {
    const { current, runtime } = context;
    this.#scope = scope;
    this.#before = context;
    this.#context = context;
    this.#evaluator =
      current?.engine === 'service' && runtime ? new Evaluator(current.profile, runtime) : null;
  }

  /** Of a measurement that the device's purposes have not seen yet. */
  measure(measurement: Measurement): void {
    const evaluator = this.#evaluator;
    if (!evaluator) return;
    const before = evaluator.cost;
    if (this.#before.evidenceLog) this.#evaluated.push(measurement);
    const moment = { t: measurement.ts, arrivedTs: this.#scope.arrivedTs };
    const { firings, transition } = evaluator.measure(measurement, moment, false);
    this.#scope.budget.spent += (evaluator.cost - before) * costs.cause;
    const movedTo = transition?.to ?? null;
    for (const firing of firings) perform(this.#context, firing, movedTo, this.#scope);
    if (firings.length > 0) this.#hasFired = true;
    if (transition) this.#context = move(this.#context, transition, measurement.ts, this.#scope);
  }

  /** The device as it stands afterwards. */
  end(): DeviceContext {
    const context = this.#context;
    const runtime = this.#evaluator?.end();
    if (!runtime) return context;
    // An event's key holds the version of the device's row: each that records one is written.
    const isSame = runtime === context.runtime;
    if (isSame && !this.#hasFired) return context;
    const after = isSame ? { ...runtime } : runtime;
    const evidenceLog = logAfter(this.#before, after, this.#evaluated);
    return { ...context, runtime: after, evidenceLog };
  }
}

/** The actions of an event that fired, as rows and effects. */
function perform(
  context: DeviceContext,
  firing: Firing,
  movedTo: Place | null,
  scope: Scope,
): void {
  const { event, actions, name, record } = firing;
  const { device } = context;
  scope.budget.spent += costs.firing + costs.firingCause * event.cause.senses.length;
  if (record) recordEvent(context, event, scope);
  const profile = context.current?.profile;
  const described = profile ? describe(profile, event.cause.engine) : null;
  if (described) {
    const isFresh = event.ts >= scope.arrivedTs - scope.limits.ringMaxAgeMs;
    const of = {
      isFirst: firing.isFirst,
      isFresh,
      isRecorded: record,
      from: context.place,
      movedTo,
    };
    signal(context, { kind: 'fired', ...described, event, ...of }, scope);
  }
  for (const message of messagesOf(actions, { device, event, name }))
    scope.rows.effects.push({ kind: 'down', uuid: device.uuid, message });
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
