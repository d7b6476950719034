import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileProfile, type Evaluated } from '../../src/engine/compile.ts';
import { evaluate, Evaluator } from '../../src/engine/evaluator.ts';
import { startRuntime } from '../../src/engine/runtime.ts';
import type { Measurement } from '../../src/contract/values.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { momentOf } from './samples.ts';
import { runs } from '../support/share.ts';

/** Usually long windows that need few or nearly all of their outcomes. */
const cause = fc
  .record({
    sId: fc.constantFrom('a', 'a', 'a', 'b'),
    isGt: fc.integer({ min: 0, max: 9 }),
    needed: fc.constantFrom(1, 1, 2, 12, 29, 31, 45, 60, 100),
    more: fc.constantFrom(0, 0, 1, 30, 40),
    negate: fc.boolean(),
    isAny: fc.constantFrom(false, false, false, true),
  })
  .map(({ sId, isGt, needed, more, negate, isAny }) => ({
    sId,
    thresholds: isAny ? { isAny } : { isGt },
    threshold: { count: needed, negate },
    measurement: { count: needed + more },
  }));

const eventsOf = fc.array(
  fc.record({
    causes: fc.array(cause, { minLength: 1, maxLength: 3 }),
    gotoStId: fc.constantFrom(undefined, undefined, 1, 2, 3),
    sendPush: fc.boolean(),
  }),
  { minLength: 1, maxLength: 3 },
);

const purposes = fc.tuple(eventsOf, eventsOf, eventsOf).map((states) => [
  Purpose.parse({
    puId: 1,
    initStId: 1,
    states: states.map((events, s) => ({
      stId: s + 1,
      isGlobal: s === 2,
      events: events.map(({ causes, gotoStId, sendPush }, e) => ({
        evId: e + 1,
        eventLog: true,
        actions: {
          ...(gotoStId === undefined ? {} : { engine: { gotoStId } }),
          ...(sendPush ? { cloud: { sendPush: true } } : {}),
        },
        causes,
      })),
    })),
  }),
]);

/** In runs of equal values, so that windows fill, hold and empty. */
const measurements = fc
  .array(
    fc.record({
      sId: fc.constantFrom('a', 'a', 'a', 'a', 'b'),
      vals: fc.constantFrom([0], [9], [20], [4, 6], [0, 20], [20, 20, 20, 0]),
      length: fc.integer({ min: 1, max: 90 }),
      isPlace: fc.constantFrom(false, false, false, false, false, true),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((runs) =>
    runs.flatMap(({ sId, vals, length, isPlace }) =>
      Array.from({ length }, (_, n) => ({
        sId,
        val: isPlace && n === 0 ? { lat: 1, long: 2 } : (vals[n % vals.length] ?? 0),
      })),
    ),
  )
  .map((list) => list.map((each, n): Measurement => ({ ...each, ts: n })));

function oneByOne(installed: Purpose[], stream: Measurement[]) {
  const profile = compileProfile('p', installed);
  let runtime = startRuntime(profile, 0);
  const outcomes: Evaluated[] = stream.map((measurement) => {
    const { runtime: after, ...outcome } = evaluate(profile, runtime, measurement);
    runtime = after;
    return outcome;
  });
  return { runtime, outcomes };
}

function inMessages(installed: Purpose[], stream: Measurement[], size: number) {
  const profile = compileProfile('p', installed);
  let runtime = startRuntime(profile, 0);
  const outcomes: Evaluated[] = [];
  for (let from = 0; from < stream.length; from += size) {
    const evaluator = new Evaluator(profile, runtime);
    for (const each of stream.slice(from, from + size))
      outcomes.push(evaluator.measure(each, momentOf(each), true));
    runtime = evaluator.end();
  }
  return { runtime, outcomes };
}

test('the generated purposes fire, move, and sometimes lack many outcomes', () => {
  const samples = fc.sample(fc.tuple(purposes, measurements), { numRuns: 200, seed: 5 });
  const outcomes = samples.flatMap((sample) => inMessages(...sample, 1_000).outcomes);
  expect(outcomes.flatMap(({ firings }) => firings).length).toBeGreaterThan(300);
  expect(outcomes.filter(({ transition }) => transition).length).toBeGreaterThan(100);
});

test('numbers that are taken together fire and leave the same as numbers taken one by one', () => {
  fc.assert(
    fc.property(
      purposes,
      measurements,
      fc.constantFrom(2, 9, 50, 1_000),
      (installed, stream, size) => {
        const [alone, together] = [
          oneByOne(installed, stream),
          inMessages(installed, stream, size),
        ];
        expect(together.outcomes).toStrictEqual(alone.outcomes);
        expect(together.runtime).toStrictEqual(alone.runtime);
      },
    ),
    { numRuns: runs(1_500) },
  );
});
