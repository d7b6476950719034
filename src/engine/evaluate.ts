import type { Profile } from './compile.ts';
import { Evaluator } from './evaluator.ts';
import type { Evaluated, Moment } from './outcome.ts';
import type { Measurement } from '../contract/measurement.ts';
import type { Runtime } from './runtime.ts';

/** `runtime` is the object that was given where the evidence did not change. */
export type Evaluation = { runtime: Runtime } & Evaluated;

/**
 * Evaluates one measurement that was not evaluated before (`newestAfter`), and none of the ticks before it: a pure
 * function of its arguments, none of which it changes. Several of one device are cheaper in one go: `Evaluator`.
 */
export function evaluate(
  profile: Profile,
  runtime: Runtime,
  measurement: Measurement,
  moment: Moment = { t: measurement.ts, arrivedTs: measurement.ts },
): Evaluation {
  const evaluator = new Evaluator(profile, runtime);
  const outcome = evaluator.measure(measurement, moment, true);
  return { runtime: evaluator.end(), ...outcome };
}
