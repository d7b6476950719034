import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeEvaluation, Description, explain } from '../../src/engine/explain.ts';
import type { Measurement } from '../../src/contract/values.ts';
import { listWarnings } from '../../src/engine/warnings.ts';
import { measurements, purposes } from './arbitraries.ts';
import { deepFreeze, profileOf, run, start, stored, type Standing } from './samples.ts';
import { runs } from '../support/share.ts';

const options = { numRuns: runs(1_000) };

/** Everything that is visible outside of a run. */
function outcomes(evaluations: ReturnType<typeof run>['evaluations']) {
  return evaluations.flatMap(({ firings, transition }) => [
    ...firings,
    ...(transition ? [transition] : []),
  ]);
}

test('the generated profiles fire, move and have episodes; otherwise the rest would prove little', () => {
  const samples = fc.sample(fc.tuple(purposes, measurements), { numRuns: 300, seed: 7 });
  const evaluations = samples.flatMap(
    ([installed, stream]) => run(profileOf(...installed), stream).evaluations,
  );
  const firings = evaluations.flatMap((evaluation) => evaluation.firings);
  expect(firings.length).toBeGreaterThan(300);
  expect(evaluations.filter(({ transition }) => transition).length).toBeGreaterThan(100);
  expect(
    firings.filter(({ tells, isFirst }) => tells === 'alarm' && !isFirst).length,
  ).toBeGreaterThan(10);
});

test('the same input gives the same output', () => {
  fc.assert(
    fc.property(purposes, measurements, (installed, stream) => {
      const once = run(profileOf(...installed), stream);
      const twice = run(profileOf(...installed), stream);
      expect(twice).toStrictEqual(once);
    }),
    options,
  );
});

test('a runtime survives being stored', () => {
  fc.assert(
    fc.property(purposes, measurements, (installed, stream) => {
      const profile = profileOf(...installed);
      const { runtime, seen } = run(profile, stream);
      expect(stored(profile, { runtime, seen })).toStrictEqual({ runtime, seen });
    }),
    options,
  );
});

test('splitting a stream, and storing and reading the runtime there, changes nothing', () => {
  fc.assert(
    fc.property(purposes, measurements, fc.nat(40), fc.nat(40), (installed, stream, one, other) => {
      const profile = profileOf(...installed);
      const whole = run(profile, stream);
      const [first, second] = [Math.min(one, other), Math.max(one, other)];
      const head = run(profile, stream.slice(0, first));
      const middle = run(profile, stream.slice(first, second), stored(profile, head));
      const tail = run(profileOf(...installed), stream.slice(second), stored(profile, middle));
      const parts = [head, middle, tail].flatMap(({ evaluations }) => outcomes(evaluations));
      expect(parts).toStrictEqual(outcomes(whole.evaluations));
      expect(tail.runtime).toStrictEqual(whole.runtime);
    }),
    options,
  );
});

test('a measurement that is delivered again, at any later time, changes nothing', () => {
  fc.assert(
    fc.property(
      purposes,
      measurements,
      fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: 5 }),
      (installed, stream, repeats) => {
        const profile = profileOf(...installed);
        const plain = run(profile, stream);
        const repeated = run(profile, repeatSome(stream, repeats));
        expect(outcomes(repeated.evaluations)).toStrictEqual(outcomes(plain.evaluations));
        expect(repeated.runtime).toStrictEqual(plain.runtime);
      },
    ),
    options,
  );
});

test('late data change nothing', () => {
  fc.assert(
    fc.property(purposes, measurements, measurements, (installed, stream, more) => {
      const profile = profileOf(...installed);
      const before = run(profile, stream);
      const late = more
        .filter(({ sId }) => before.seen[sId])
        .map((it) => ({ ...it, ts: (before.seen[it.sId]?.ts ?? 0) - 1 - it.ts }));
      const after = run(profile, late, before);
      expect(outcomes(after.evaluations)).toEqual([]);
      expect(after.runtime).toBe(before.runtime);
      expect(after.seen).toBe(before.seen);
    }),
    options,
  );
});

test('the runtime is the same object if nothing fires and a measurement repeats earlier outcomes', () => {
  fc.assert(
    fc.property(purposes, measurements, (installed, stream) => {
      const profile = profileOf(...installed);
      let before: Standing = start(profile);
      for (const measurement of stream) {
        const after = run(profile, [measurement], before);
        const isAsBefore = JSON.stringify(after.runtime) === JSON.stringify(before.runtime);
        if (outcomes(after.evaluations).length === 0) {
          expect(after.runtime === before.runtime).toBe(isAsBefore);
        }
        before = after;
      }
    }),
    options,
  );
});

test('no argument is changed', () => {
  fc.assert(
    fc.property(purposes, measurements, (installed, stream) => {
      const profile = profileOf(...deepFreeze(installed));
      let standing: Standing = start(profile);
      for (const measurement of deepFreeze(stream)) {
        standing = run(profile, [measurement], deepFreeze(standing));
      }
      expect(standing.runtime).toStrictEqual(run(profile, stream).runtime);
    }),
    options,
  );
});

test('every valid profile can be evaluated, explained and checked for warnings, and a move ends at its target', () => {
  fc.assert(
    fc.property(purposes, measurements, (installed, stream) => {
      const profile = profileOf(...installed);
      const { runtime, seen, evaluations } = run(profile, stream);
      for (const evaluation of evaluations) {
        if (evaluation.transition) {
          expect(evaluation.runtime).toMatchObject(evaluation.transition.to);
          // If the state is entered again, its episodes continue.
          if (evaluation.transition.event) expect(evaluation.runtime.local).toEqual([]);
        }
      }
      const explanation = explain(profile, runtime, seen);
      const described = describeEvaluation(profile, explanation, { nowTs: 0 });
      expect(Description.parse(described)).toStrictEqual(described);
      listWarnings(installed, [[{ sId: '0x1', min: -1, max: 3 }]]);
    }),
    options,
  );
});

test('an event reported as unable to fire never fires', () => {
  fc.assert(
    fc.property(purposes, measurements, (installed, stream) => {
      const never = new Set(
        listWarnings(installed)
          .filter(({ message }) => message.startsWith('this event can never fire'))
          .map(({ path }) => path),
      );
      const { evaluations } = run(profileOf(...installed), stream);
      for (const { event } of evaluations.flatMap(({ firings }) => firings)) {
        const { puId, stId, evId } = event.cause.engine;
        expect(never).not.toContain(`/purposes/${puId}/states/${stId}/events/${evId}`);
      }
    }),
    options,
  );
});

/** Each pair names an earlier measurement and how much later it is repeated. */
function repeatSome(stream: Measurement[], repeats: [number, number][]): Measurement[] {
  const result = [...stream];
  for (const [which, later] of repeats) {
    const from = which % result.length;
    const again = result[from];
    if (again) result.splice(from + 1 + (later % (result.length - from)), 0, again);
  }
  return result;
}
