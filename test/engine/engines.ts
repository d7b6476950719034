import type { Measurement, Place } from '../../src/contract/values.ts';
import type { Purpose } from '../../src/contract/purpose.ts';
import type { Moment, Profile } from '../../src/engine/compile.ts';
import { reportedMoveOf } from '../../src/engine/fire.ts';
import { encodeRuntime, readRuntime, type StoredRuntime } from '../../src/engine/runtime-codec.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { Listening } from '../../src/engine/last-seen.ts';
import { broughtBack, enter, startRuntime, type Runtime } from '../../src/engine/runtime.ts';
import { ReferenceEngine } from './reference/engine.ts';
import type { Engine, Said, StartEngine } from './run-vector.ts';
import { deepFreeze, profileOf } from './samples.ts';

/** The engine of test/engine/reference. */
export const startReference: StartEngine = (purposes, arrivedTs) =>
  new ReferenceEngine(purposes, arrivedTs);

/** The service's engine. */
export const startEvaluator: StartEngine = (purposes, arrivedTs) =>
  new EvaluatorEngine(purposes, arrivedTs);

/** The service's engine, which stores and reads its runtime before each call. */
export const startStoringEvaluator: StartEngine = (purposes, arrivedTs) =>
  new EvaluatorEngine(purposes, arrivedTs, { isStoring: true });

export class EvaluatorEngine implements Engine {
  readonly #profile: Profile;
  #listening: Listening = { gaps: [] };
  readonly #isStoring: boolean;
  readonly #givesAll: boolean;
  #evaluator: Evaluator;

  /** `isStoring`: stores and reads the runtime before each call. `givesAll`: also reports silent firings. */
  constructor(
    purposes: Purpose[],
    arrivedTs: number,
    { isStoring = false, givesAll = true }: { isStoring?: boolean; givesAll?: boolean } = {},
  ) {
    this.#profile = profileOf(...purposes);
    this.#isStoring = isStoring;
    this.#givesAll = givesAll;
    this.#evaluator = this.#from(startRuntime(this.#profile, arrivedTs));
  }

  get runtime(): Runtime {
    return this.#evaluator.end();
  }

  get place(): Place {
    const { puId, stId } = this.runtime;
    return { puId, stId };
  }

  listen(gaps: Listening['gaps']): void {
    this.#listening = { gaps };
    this.#evaluator = this.#from(this.#evaluator.end());
  }

  /** Stores the runtime and reads it again. */
  store(): void {
    const text = encodeRuntime(this.#profile, this.#evaluator.end());
    this.#evaluator = this.#from(readRuntime(this.#profile, JSON.parse(text) as StoredRuntime));
  }

  ticksUntil(untilTs: number) {
    return this.#next().ticksUntil(untilTs);
  }

  ticksForcedBy(sId: string, moment: Moment) {
    return this.#next().ticksForcedBy(sId, moment);
  }

  measure(measurement: Measurement, moment: Moment) {
    return this.#next().measure(measurement, moment, this.#givesAll);
  }

  nextDueTs(): number | null {
    return this.#next().nextDueTs();
  }

  setRight(latestTs: number): void {
    const runtime = broughtBack(this.#profile, this.#evaluator.end(), latestTs);
    this.#evaluator = this.#from(runtime);
  }

  report(to: Place, arrivedTs: number, { evId, ts = arrivedTs }: Said = {}) {
    const from = this.place;
    this.#evaluator = this.#from(enter(this.#profile, this.#evaluator.end(), to, arrivedTs));
    return reportedMoveOf(this.#profile.pId, from, to, { evId, ts });
  }

  #next(): Evaluator {
    if (this.#isStoring) this.store();
    return this.#evaluator;
  }

  #from(runtime: Runtime): Evaluator {
    return new Evaluator(this.#profile, deepFreeze(runtime), this.#listening);
  }
}
