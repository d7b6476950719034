import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeRuntime, readRuntime, type StoredRuntime } from '../../src/engine/runtime-codec.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { findNextDue } from '../../src/engine/timed.ts';
import { happenings, listening, purposesInTime, startTs } from './arbitraries-in-time.ts';
import { EvaluatorEngine } from './engines.ts';
import { answer, callsOf } from './play.ts';
import type { Gap } from './reference/due.ts';
import { profileOf } from './samples.ts';

test("the next due time of a stored runtime equals the evaluator's, and nothing runs before the earliest", () => {
  const seen = { due: 0, postponed: 0, quiet: 0 };
  fc.assert(
    fc.property(purposesInTime, happenings, listening, (purposes, stream, gaps) => {
      const profile = profileOf(...purposes);
      const engine = new EvaluatorEngine(purposes, startTs);
      let known: Gap[] = [];
      for (const call of callsOf(purposes, stream, gaps)) {
        const runtime = readRuntime(
          profile,
          JSON.parse(encodeRuntime(profile, engine.runtime)) as StoredRuntime,
        );
        const { ts, earliestTs } = findNextDue(profile, runtime, { gaps: known });
        expect(ts).toBe(new Evaluator(profile, runtime, { gaps: known }).nextDueTs());
        if (ts !== null) seen.due += 1;
        if (ts !== earliestTs) seen.postponed += 1;
        expect(earliestTs === null).toBe(ts === null);
        expect(earliestTs ?? 0).toBeLessThanOrEqual(ts ?? 0);
        if (call.kind === 'ticks') {
          known = call.gaps;
          if (earliestTs === null || earliestTs > call.untilTs) {
            seen.quiet += 1;
            expect(
              new Evaluator(profile, runtime, { gaps: known }).ticksUntil(call.untilTs),
            ).toEqual([]);
          }
        }
        answer(engine, call);
      }
    }),
    { numRuns: 100 },
  );
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(50);
});
