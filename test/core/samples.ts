import { compileProfile, type Profile } from '../../src/core/compile.ts';
import { evaluate, type Evaluation } from '../../src/core/evaluate.ts';
import type { Measurement } from '../../src/core/measurement.ts';
import { Purpose } from '../../src/core/purpose.ts';
import { startRuntime, type Runtime } from '../../src/core/runtime.ts';

/** A purpose with one state, number 1, that has these events. */
export function purposeWith(...events: unknown[]): Purpose {
  return Purpose.parse({ puId: 1, initStId: 1, states: [{ stId: 1, events }] });
}

export function profileOf(...purposes: Purpose[]): Profile {
  return compileProfile('p', purposes);
}

export function number(val: number, ts: number, sId = '0x1'): Measurement {
  return { sId, val, ts };
}

/** Evaluates measurements one after the other, from the profile's beginning or from a runtime. */
export function run(
  profile: Profile,
  measurements: Measurement[],
  from: Runtime = startRuntime(profile),
): { runtime: Runtime; evaluations: Evaluation[] } {
  let runtime = from;
  const evaluations = measurements.map((measurement) => {
    const evaluation = evaluate(profile, runtime, measurement);
    runtime = evaluation.runtime;
    return evaluation;
  });
  return { runtime, evaluations };
}
