import { describe, expect, test } from 'vitest';
import { evaluate } from '../../src/engine/evaluator.ts';
import { broughtBack, enter, hasPlace, startRuntime } from '../../src/engine/runtime.ts';
import { number, profileOf, purposeWith, run, stored } from './samples.ts';

const above20 = { sId: '0x1', thresholds: { isGt: 20 } };

describe('a runtime', () => {
  const profile = profileOf(
    purposeWith({ evId: 1, causes: [{ ...above20, threshold: { count: 2 } }] }),
  );

  test.each([
    ['a sense that no cause reads', number(21, 30, '0x7')],
    ['an older measurement', number(21, 9)],
    ['the same measurement', number(21, 10)],
  ])('is the same object after %s', (_name, measurement) => {
    const before = run(profile, [number(21, 10)]);
    const { runtime, evaluations } = run(profile, [measurement], before);
    expect(runtime).toBe(before.runtime);
    expect(evaluations).toMatchObject([{ firings: [], ended: [] }]);
  });

  test('is another object after a measurement that counts, also one that disagrees', () => {
    const { runtime } = run(profile, [number(21, 10)]);
    expect(evaluate(profile, runtime, number(0, 11)).runtime).not.toBe(runtime);
  });

  test('is the same object again once a window holds only outcomes that disagree', () => {
    const before = run(profile, [number(21, 10), number(0, 11), number(0, 12)]);
    const { runtime, seen } = run(profile, [number(1, 13), number(2, 14)], before);
    expect(runtime).toBe(before.runtime);
    expect(seen).toEqual({ '0x1': { ts: 14, vals: [2] } });
  });

  test('survives being stored between any two messages', () => {
    const { runtime } = run(profile, [number(21, 1)]);
    const { runtime: read } = stored(profile, { runtime, seen: {} });
    expect(read).toStrictEqual(runtime);
    expect(evaluate(profile, read, number(21, 2)).firings).toHaveLength(1);
  });

  test('begins in the initial state, with no evidence', () => {
    expect(startRuntime(profile, 0)).toEqual({ puId: 1, stId: 1, local: [], global: [] });
  });

  test('in a place that the profile lacks neither fires nor fails', () => {
    const lost = enter(profile, startRuntime(profile, 0), { puId: 5, stId: 5 }, 0);
    expect(evaluate(profile, lost, number(21, 1)).firings).toEqual([]);
  });

  test('holds no negative zero, which JSON would not return', () => {
    const relative = profileOf(
      purposeWith({
        evId: 1,
        causes: [
          {
            sId: '0x1',
            threshold: { relative: true, count: 9 },
            thresholds: { isAny: true, isLt: 1 },
          },
        ],
      }),
    );
    const { runtime } = run(relative, [number(-0, 1), number(0, 2)]);
    expect(stored(relative, { runtime, seen: {} }).runtime).toStrictEqual(runtime);
  });

  test('accepts a sense of any name', () => {
    const odd = profileOf(
      purposeWith({ evId: 1, causes: [{ sId: '__proto__', thresholds: { isAny: true } }] }),
    );
    const { evaluations } = run(odd, [number(1, 5, '__proto__'), number(1, 4, '__proto__')]);
    expect(evaluations.map(({ firings }) => firings.length)).toEqual([1, 0]);
  });
});

test('knows whether a place is in a profile', () => {
  const profile = profileOf(purposeWith());
  expect(hasPlace(profile, { puId: 1, stId: 1 })).toBe(true);
  expect(hasPlace(profile, { puId: 1, stId: 2 })).toBe(false);
  expect(hasPlace(profile, { puId: 2, stId: 1 })).toBe(false);
});

describe("once the service's clock is right again after it was ahead", () => {
  const latestTs = 1_010_000;
  const back = (cause: object, ts: number) => {
    const profile = profileOf(purposeWith({ evId: 1, causes: [{ sId: '0x1', ...cause }] }));
    const { runtime } = run(profile, [number(21, ts)]);
    return { runtime, back: broughtBack(profile, runtime, latestTs) };
  };

  // test/vectors/clock.json covers what happens to the times.
  test.each([
    ['a silence', { threshold: { noneForMs: 60_000 } }],
    ['a lasting condition', { threshold: { forMs: 60_000 }, thresholds: { isGt: 20 } }],
    ['a condition that ages', { threshold: { maxAgeMs: 60_000 }, thresholds: { isGt: 20 } }],
    ['a statistic', { threshold: { over: { ms: 60_000, stat: 'avg' } }, thresholds: { isGt: 20 } }],
  ])('%s that began before the leap stays the same object, another does not', (_name, cause) => {
    const before = back(cause, latestTs);
    expect(before.back).toBe(before.runtime);
    const after = back(cause, latestTs + 1);
    expect(after.back).not.toEqual(after.runtime);
  });
});
