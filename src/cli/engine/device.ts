import type { DeviceEvent } from '../../contract/event.ts';
import type { Measurement } from '../../contract/measurement.ts';
import type { Place } from '../../contract/place.ts';
import type { Purpose } from '../../contract/purpose.ts';
import type { SentMeasurement } from '../../contract/uplink.ts';
import { compileProfile, type Profile } from '../../engine/compile.ts';
import { describeEvaluation } from '../../engine/describe-evaluation.ts';
import { reportedMoveOf } from '../../engine/device-event.ts';
import { Evaluator } from '../../engine/evaluator.ts';
import { explain } from '../../engine/explain.ts';
import type { Listening } from '../../engine/listening.ts';
import type { Evaluated } from '../../engine/outcome.ts';
import { broughtBack, enter, startRuntime, type Runtime } from '../../engine/runtime.ts';
import type { Reported } from '../../ingest/rules/device-context.ts';
import { aheadMs } from '../../ingest/rules/sense-clock.ts';
import { isOldReport } from '../../ingest/rules/state.ts';
import { Arrival, type Remark } from './arrival.ts';
import type { Said } from './happening.ts';

/** What became of a measurement: `outcome` null where it was not evaluated, `forced` the ticks that it forced. */
export type Measured = { measurement: Measurement; forced: Evaluated[]; outcome: Evaluated | null };

/** A device for which the service evaluates, without the service: the engine alone, and which measurements count. */
export class Device {
  readonly #arrival = new Arrival();
  readonly #listening: Listening;
  #profile: Profile;
  #evaluator: Evaluator;
  /** The newest report of its state under this profile. */
  #reported: Reported | null = null;

  constructor(purposes: Purpose[], installedTs: number, listening: Listening = { gaps: [] }) {
    this.#listening = listening;
    this.#profile = compileProfile('', purposes);
    this.#evaluator = this.#from(startRuntime(this.#profile, installedTs));
  }

  get profile(): Profile {
    return this.#profile;
  }

  get place(): Place {
    const { puId, stId } = this.#settle();
    return { puId, stId };
  }

  nextDueTs(): number | null {
    return this.#evaluator.nextDueTs();
  }

  /** Another profile takes the place of the current one. */
  install(purposes: Purpose[], arrivedTs: number): void {
    this.#profile = compileProfile('', purposes);
    this.#evaluator = this.#from(startRuntime(this.#profile, arrivedTs));
    this.#reported = null;
  }

  /**
   * The device says where it is. The event that records it; null where it was there already, or the report is older than
   * the one before it, or is that one again.
   */
  enter(to: Place, said: Said, arrivedTs: number): DeviceEvent | null {
    const { evId, ts = arrivedTs } = said;
    const reported = { ...to, ts };
    // Nothing is refused for being too far ahead: any time may have been reported rightly.
    const known = { isStamped: said.ts === undefined, latestTs: Infinity };
    if (isOldReport(this.#reported, reported, known)) return null;
    this.#reported = reported;
    return this.#enter(to, { evId, ts }, arrivedTs);
  }

  /** The device stands there, without a report. */
  standIn(place: Place, arrivedTs: number): void {
    this.#enter(place, { ts: arrivedTs }, arrivedTs);
  }

  #enter(to: Place, said: { evId?: number | undefined; ts: number }, arrivedTs: number) {
    const from = this.#settle();
    this.#evaluator = this.#from(enter(this.#profile, from, to, arrivedTs));
    return reportedMoveOf('', from, to, said);
  }

  /** The clock by which messages arrive was ahead, and is right again: it is `nowTs`. */
  setClockRight(nowTs: number): void {
    this.#evaluator = this.#from(broughtBack(this.#profile, this.#settle(), nowTs + aheadMs));
  }

  ticksUntil(untilTs: number): Evaluated[] {
    return this.#evaluator.ticksUntil(untilTs).map((tick) => this.#told(tick));
  }

  /** A message with measurements; each in the order in which they are evaluated. */
  measure(
    sent: readonly SentMeasurement[],
    arrivedTs: number,
  ): { measured: Measured[]; remarks: Remark[] } {
    const measured: Measured[] = [];
    const remarks = this.#arrival.receive(sent, arrivedTs, (measurement, t) => {
      if (t === null) {
        measured.push({ measurement, forced: [], outcome: null });
        return;
      }
      const moment = { t, arrivedTs };
      const ticks = this.#evaluator.ticksForcedBy(measurement.sId, moment);
      const forced = ticks.map((tick) => this.#told(tick));
      const outcome = this.#told(this.#evaluator.measure(measurement, moment, true));
      measured.push({ measurement, forced, outcome });
    });
    return { measured, remarks };
  }

  /** What each live cause has and lacks. */
  explain(nowTs: number) {
    const listening = this.#listening;
    const asked = { nowTs, listening };
    const found = explain(this.#profile, this.#settle(), this.#arrival.seen, asked);
    return describeEvaluation(this.#profile, found, { nowTs });
  }

  /** What is kept of it now; evaluated is from that on. */
  #settle(): Runtime {
    const runtime = this.#evaluator.end();
    this.#evaluator = this.#from(runtime);
    return runtime;
  }

  #told(outcome: Evaluated): Evaluated {
    for (const { event } of outcome.firings) this.#arrival.addSilent(event);
    return outcome;
  }

  #from(runtime: Runtime): Evaluator {
    return new Evaluator(this.#profile, runtime, this.#listening);
  }
}
