import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { Measurement } from '../../src/contract/values.ts';
import type { Runtime } from '../../src/engine/runtime.ts';
import { encodeRuntime, readRuntime, type StoredRuntime } from '../../src/engine/runtime-codec.ts';
import { explain } from '../../src/engine/explain.ts';
import { momentOf, number, profileOf, purposeWith, start } from './samples.ts';
import { runs } from '../support/share.ts';

/** A profile of one event that needs one more of the last outcomes than it gets, so that it never fires. */
const counting = (windowLength: number, count: number, relative = false) =>
  profileOf(
    purposeWith({
      evId: 1,
      causes: [
        {
          sId: '0x1',
          measurement: { count: windowLength },
          threshold: { count, ...(relative && { relative }) },
          thresholds: { isGt: 0 },
        },
        { sId: '0x2', thresholds: { isGt: 0 } },
      ],
      actions: {},
    }),
  );

/** Evaluates in messages of `size` measurements. Returns the runtime, stored and read again at the end. */
function inMessages(
  profile: ReturnType<typeof profileOf>,
  stream: Measurement[],
  size: number,
): Runtime {
  let runtime: Runtime = start(profile).runtime;
  for (let at = 0; at < stream.length; at += size) {
    const evaluator = new Evaluator(profile, runtime);
    for (const measurement of stream.slice(at, at + size))
      evaluator.measure(measurement, momentOf(measurement), true);
    runtime = evaluator.end();
  }
  return runtime;
}

test('a long window has the last outcomes, however messages divide them', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 28, max: 130 }),
      fc.array(fc.boolean(), { maxLength: 300 }),
      fc.integer({ min: 1, max: 100 }),
      (windowLength, outcomes, size) => {
        const profile = counting(windowLength, 1);
        const stream = outcomes.map((agrees, ts) => number(agrees ? 1 : -1, ts));
        const runtime = inMessages(profile, stream, size);
        const last = outcomes.slice(-windowLength);
        expect(explain(profile, runtime, {}).events[0]?.causes[0]).toMatchObject({
          of: last.length,
          matched: last.filter(Boolean).length,
        });
        // One by one, no outcome is ever ahead of the words.
        expect(runtime).toStrictEqual(inMessages(profile, stream, 1));
        const text = encodeRuntime(profile, runtime);
        expect(readRuntime(profile, JSON.parse(text) as StoredRuntime)).toStrictEqual(runtime);
      },
    ),
    { numRuns: runs(300) },
  );
});

test('a window that continues after a firing within one message is complete', () => {
  const profile = profileOf(
    purposeWith({
      evId: 1,
      causes: [
        {
          sId: '0x1',
          measurement: { count: 40 },
          threshold: { count: 3, relative: true },
          thresholds: { isGt: 0 },
        },
      ],
    }),
  );
  // The first value is the baseline; three above it fire, and what follows is collected anew.
  const stream = [0, 1, 1, 1, 1, 0, 1, 0, 0].map((val, ts) => number(val, ts));
  const runtime = inMessages(profile, stream, stream.length);
  expect(runtime).toStrictEqual(inMessages(profile, stream, 1));
  const text = encodeRuntime(profile, runtime);
  expect(JSON.parse(text)).toMatchObject({ events: [[0, [5, 'UAAAAAA', 0, 0]]] });
});

test('stores evidence that causes share once, even if windows of other lengths have none yet', () => {
  const event = (evId: number, measurement: object) => ({
    evId,
    causes: [{ sId: '0x1', ...measurement, threshold: { count: 2 }, thresholds: { isGt: 0 } }],
  });
  const profile = profileOf(
    purposeWith(
      event(1, { measurement: { count: 9 } }),
      event(2, { measurement: { count: 40 } }),
      event(3, { measurement: { count: 9 } }),
    ),
  );
  const disagreed = inMessages(profile, [number(-1, 1)], 1);
  expect(JSON.parse(encodeRuntime(profile, disagreed))).toMatchObject({
    events: [[0, [1]]],
    local: { '1/1': 0, '1/2': 0, '1/3': 0 },
  });
  const mixed = inMessages(profile, [number(1, 1), number(-1, 2)], 2);
  expect(JSON.parse(encodeRuntime(profile, mixed))).toMatchObject({
    events: [
      [0, [2, 'CA', 0]],
      [0, [2, 'CAAAAAA', 0]],
    ],
    local: { '1/1': 0, '1/2': 1, '1/3': 0 },
  });
});
