import { compileProfile, type Moment, type Profile } from '../../src/engine/compile.ts';
import { evaluate } from '../../src/engine/evaluator.ts';
import type { Measurement } from '../../src/contract/values.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { encodeRuntime, readRuntime, type StoredRuntime } from '../../src/engine/runtime-codec.ts';
import { startRuntime, type Runtime } from '../../src/engine/runtime.ts';
import { notice, type LastSeen } from '../../src/engine/last-seen.ts';

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

/** It arrives at once. */
export function momentOf({ ts }: Measurement): Moment {
  return { t: ts, arrivedTs: ts };
}

type Evaluation = ReturnType<typeof evaluate>;

/** What is kept of a device between two measurements. */
export type Standing = { runtime: Runtime; seen: LastSeen };

export function start(profile: Profile): Standing {
  return { runtime: startRuntime(profile, 0), seen: {} };
}

/** As it is read back after being stored. */
export function stored(profile: Profile, { runtime, seen }: Standing): Standing {
  const text = encodeRuntime(profile, runtime);
  return {
    runtime: readRuntime(profile, JSON.parse(text) as StoredRuntime),
    seen: JSON.parse(JSON.stringify(seen)) as LastSeen,
  };
}

/** Evaluates new measurements one after the other, from the profile's beginning or from a later state. */
export function run(
  profile: Profile,
  measurements: Measurement[],
  from: Standing = start(profile),
): Standing & { evaluations: Evaluation[] } {
  let { runtime, seen } = from;
  const evaluations = measurements.map((measurement): Evaluation => {
    const noticed = notice(seen, measurement);
    if (!noticed) return { runtime, firings: [], ended: [], arrivedTs: measurement.ts };
    seen = noticed;
    const evaluation = evaluate(profile, runtime, measurement);
    runtime = evaluation.runtime;
    return evaluation;
  });
  return { runtime, seen, evaluations };
}

/** Makes every attempt to change the value throw. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}
