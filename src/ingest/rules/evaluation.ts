import { messagesOf } from '../../contract/actions/actions.ts';
import { Evaluator } from '../../engine/evaluator.ts';
import type { Firing, Transition } from '../../engine/evaluator.ts';
import type { Measurement } from '../../contract/measurement.ts';
import { costs } from './budget.ts';
import type { DeviceContext } from './device-context.ts';
import { logAfter } from './evidence-log.ts';
import { recordEvent } from './record-event.ts';
import type { Scope } from './scope.ts';

/** The evaluation of one message's measurements, where the service evaluates them for its device. */
export class Evaluating {
  readonly #scope: Scope;
  readonly #evaluator: Evaluator | null;
  #context: DeviceContext;
  #hasFired = false;
  readonly #before: DeviceContext;
  readonly #evaluated: Measurement[] = [];

  constructor(context: DeviceContext, scope: Scope) {
    const { current, runtime } = context;
    this.#scope = scope;
    this.#context = context;
    this.#before = context;
    this.#evaluator =
      current?.engine === 'service' && runtime ? new Evaluator(current.profile, runtime) : null;
  }

  /** Of a measurement that is news to the device's purposes. */
  evaluate(measurement: Measurement): void {
    const evaluator = this.#evaluator;
    if (!evaluator) return;
    const before = evaluator.cost;
    if (this.#before.evidenceLog) this.#evaluated.push(measurement);
    const { firings, transition } = evaluator.measure(measurement, false);
    this.#scope.budget.spend((evaluator.cost - before) * costs.cause);
    for (const firing of firings) perform(this.#context, firing, this.#scope);
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
function perform(context: DeviceContext, firing: Firing, scope: Scope): void {
  const { event, actions, name } = firing;
  const { device } = context;
  scope.budget.spend(costs.firing + costs.firingCause * event.cause.senses.length);
  // What a backlog tells of is history by now: recorded, but no reason to ring.
  const isStale = event.ts < scope.arrivedTs - scope.limits.ringMaxAgeMs;
  const rings = firing.ring && !isStale;
  const told = firing.ring && isStale ? { ...event, notified: false } : event;
  if (firing.record) recordEvent(context, told, scope);
  if (rings) scope.rows.rings.push({ device, event, actions, name, key: undefined });
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
