import type { Measurement } from '../../contract/measurement.ts';
import type { Profile } from '../../engine/compile.ts';
import { Evaluator } from '../../engine/evaluator.ts';
import type { Evaluated, Transition } from '../../engine/outcome.ts';
import { watchedOf } from '../../engine/watched.ts';
import type { DeviceContext } from './device-context.ts';
import { logAfter } from './evidence-log.ts';
import { hear } from './heard.ts';
import { costs } from './model.ts';
import { performFiring } from './perform-firing.ts';
import { recordEvent } from './record-event.ts';
import type { MessageScope } from './scope.ts';
import { signal, signalMove } from './signal.ts';

/** What the service evaluates for a device: where that evaluates itself, silences only. Null: nothing. */
export function evaluatedProfile({ current }: DeviceContext): Profile | null {
  if (!current) return null;
  return current.engine === 'service' ? current.profile : watchedOf(current.profile);
}

/** The evaluation of one message, or tick, where the service evaluates for its device. */
export class MessageEvaluation {
  readonly #scope: MessageScope;
  readonly #evaluator: Evaluator | null;
  readonly #before: DeviceContext;
  readonly #evaluated: Measurement[] = [];
  #context: DeviceContext;
  #hasFired = false;

  constructor(context: DeviceContext, scope: MessageScope) {
    const { runtime, device } = context;
    const profile = evaluatedProfile(context);
    const { listeningOf } = scope.limits;
    this.#scope = scope;
    this.#before = context;
    this.#context = context;
    this.#evaluator =
      profile && runtime
        ? new Evaluator(profile, runtime, profile.isTimed ? listeningOf?.(device) : undefined)
        : null;
  }

  /**
   * Evaluates what time alone has completed by then, until the budget is spent, but up to one move at least. Gives
   * whether that was all.
   */
  runUntil(untilTs: number): boolean {
    const evaluator = this.#evaluator;
    if (!evaluator) return true;
    for (;;) {
      const before = evaluator.cost;
      const ticks = evaluator.ticksUntil(untilTs, 1);
      this.#charge(evaluator.cost - before);
      for (const tick of ticks) this.#perform(tick, tick.arrivedTs);
      if (!ticks.at(-1)?.transition) return true;
      if (this.#scope.budget.isSpent) return false;
    }
  }

  /** Of a measurement that the device's purposes have not seen yet, as of `t`. */
  measure(measurement: Measurement, t: number): void {
    if (this.#evaluator) this.#judge(this.#evaluator, measurement, t);
    if (this.#context.waitingSenses)
      this.#context = hear(this.#context, { sId: measurement.sId, t }, this.#scope);
  }

  #judge(evaluator: Evaluator, measurement: Measurement, t: number): void {
    const before = evaluator.cost;
    if (this.#before.evidenceLog) this.#evaluated.push(measurement);
    const moment = { t, arrivedTs: this.#scope.arrivedTs };
    for (const tick of evaluator.ticksForcedBy(measurement.sId, moment)) this.#perform(tick, t);
    const evaluated = evaluator.measure(measurement, moment, false);
    this.#charge(evaluator.cost - before);
    this.#perform(evaluated, t);
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

  #charge(cost: number): void {
    this.#scope.budget.spent += cost * costs.cause;
  }

  #perform({ firings, transition, ended, arrivedTs }: Evaluated, ts: number): void {
    const scope = this.#scope;
    if (ended.length > 0) signal(this.#context, { kind: 'ended', of: ended, arrivedTs }, scope);
    for (const firing of firings) {
      firing.event.arrivedTs = arrivedTs;
      this.#context = performFiring(this.#context, firing, transition?.to ?? null, scope);
      this.#hasFired = true;
    }
    if (!transition) return;
    signalMove(this.#context, { to: transition.to, isReport: false, arrivedTs }, scope);
    this.#context = move(this.#context, transition, ts, scope);
  }
}

function move(
  context: DeviceContext,
  { to, event }: Transition,
  ts: number,
  scope: MessageScope,
): DeviceContext {
  if (event) recordEvent(context, event, scope);
  const { uuid } = context.device;
  const placeTs = event?.ts ?? ts;
  const message = { topic: 'state' as const, payload: { ...to, ts: placeTs } };
  scope.rows.effects.push({ kind: 'down', uuid, message });
  return { ...context, place: to, placeTs };
}
