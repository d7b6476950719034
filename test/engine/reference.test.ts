import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { explain } from '../../src/engine/explain.ts';
import type { Measurement } from '../../src/contract/values.ts';
import type { Purpose } from '../../src/contract/purpose.ts';
import { encodeRuntime, readRuntime, type StoredRuntime } from '../../src/engine/runtime-codec.ts';
import type { Runtime } from '../../src/engine/runtime.ts';
import { notice, type LastSeen } from '../../src/engine/last-seen.ts';
import { measurements, measurementsUpTo, purposes, purposesWith } from './arbitraries.ts';
import { explained, storedOld } from './reference/described.ts';
import { ReferenceEngine } from './reference/engine.ts';
import { momentOf, profileOf, start } from './samples.ts';
import { runs } from '../support/share.ts';

/** The measurements of a stream that are not seen already; an engine is never given the others. */
function newsOf(stream: Measurement[]): Measurement[] {
  let seen: LastSeen = {};
  return stream.filter((measurement) => {
    const noticed = notice(seen, measurement);
    seen = noticed ?? seen;
    return noticed !== null;
  });
}

/** Where the stream is cut, and the runtime stored and read again. */
const cuts = fc.uniqueArray(fc.nat(120), { maxLength: 4 });

const read = (profile: ReturnType<typeof profileOf>, stored: unknown) =>
  readRuntime(profile, stored as StoredRuntime);

const hasLately = ({ local, global }: Runtime) =>
  [...local, ...global].some((collected) => collected?.lately);
const hasBegun = ({ local, global }: Runtime) =>
  [...local, ...global].some((collected) =>
    collected?.causes.some((cause) => cause?.begun?.length !== 0 && cause !== null),
  );

const hasGroups = (purposes: Purpose[]) =>
  purposes.some(({ states }) => states.some(({ events }) => events.some(({ anyOf }) => anyOf)));

/** Runs both engines over the same stream and compares firings, moves, and the explanation at each cut. */
function compare(installed: Purpose[], stream: Measurement[], cutAt: number[], oldUntil: number) {
  const profile = profileOf(...installed);
  const reference = new ReferenceEngine(installed);
  let runtime: Runtime = start(profile).runtime;
  let evaluator = new Evaluator(profile, runtime);
  for (const [index, measurement] of newsOf(stream).entries()) {
    const expected = reference.measure(measurement, momentOf(measurement));
    const outcome = evaluator.measure(measurement, momentOf(measurement), true);
    expect({ index, ...outcome }).toStrictEqual({ index, ...expected });
    if (!cutAt.includes(index)) continue;
    runtime = evaluator.end();
    expect(unseen(explain(profile, runtime, {}).events)).toEqual(unseen(explained(reference)));
    // The old form cannot hold the last outcomes of an episode, when something began, nor groups of causes.
    const isOld =
      index < oldUntil && !hasLately(runtime) && !hasBegun(runtime) && !hasGroups(installed);
    const stored: unknown = isOld
      ? storedOld(reference)
      : JSON.parse(encodeRuntime(profile, runtime));
    const again = read(profile, stored);
    expect(again).toStrictEqual(runtime);
    evaluator = new Evaluator(profile, again);
  }
  runtime = evaluator.end();
  expect(unseen(explain(profile, runtime, {}).events)).toEqual(unseen(explained(reference)));
}

/** As JSON, which drops absent thresholds. */
const unseen = (events: unknown) => JSON.parse(JSON.stringify(events)) as unknown;

test('firings, their reasons and explanations equal those of the reference engine', () => {
  fc.assert(fc.property(purposes, measurements, cuts, fc.nat(120), compare), {
    numRuns: runs(2_000),
  });
});

test('the same with windows longer than a word', () => {
  fc.assert(fc.property(purposesWith(100), measurementsUpTo(120), cuts, fc.nat(120), compare), {
    numRuns: runs(1_000),
  });
});

test('silent firings are omitted unless requested, and nothing else is', () => {
  fc.assert(
    fc.property(purposes, measurements, (installed, stream) => {
      const profile = profileOf(...installed);
      const all = new Evaluator(profile, start(profile).runtime);
      const some = new Evaluator(profile, start(profile).runtime);
      for (const measurement of newsOf(stream)) {
        const { firings, ...moved } = all.measure(measurement, momentOf(measurement), true);
        const seen = firings.filter(({ record, tells }) => record || tells !== 'nobody');
        expect(some.measure(measurement, momentOf(measurement), false)).toStrictEqual({
          firings: seen,
          ...moved,
        });
      }
      expect(some.end()).toStrictEqual(all.end());
    }),
    { numRuns: runs(1_000) },
  );
});
