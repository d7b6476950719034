import fc from 'fast-check';
import { expect, test } from 'vitest';
import { explain } from '../../src/engine/explain.ts';
import { listenedSince } from '../../src/engine/last-seen.ts';
import { startRuntime } from '../../src/engine/runtime.ts';
import { number, profileOf, purposeWith, run } from './samples.ts';

const minute = 60_000;
const start = Date.UTC(2026, 10, 23, 12);

const timed = [
  { sId: '0x1', threshold: { noneForMs: 40 * minute } },
  { sId: '0x2', thresholds: { isGt: 5 }, threshold: { forMs: 20 * minute } },
];
const profile = profileOf(purposeWith({ evId: 1, eventLog: true, causes: timed }));

test('gaps that ended earlier do not affect an evaluation', () => {
  const minutes = fc.integer({ min: 0, max: 240 });
  fc.assert(
    fc.property(
      fc.array(fc.record({ at: minutes, isHigh: fc.boolean() }), { maxLength: 6 }),
      fc.uniqueArray(minutes, { maxLength: 12 }),
      minutes,
      (measured, edges, atMinute) => {
        const points = measured
          .toSorted((a, b) => a.at - b.at)
          .map(({ at, isHigh }, n) => number(isHigh ? 9 : 1, start + at * minute + n, '0x2'));
        const from = { runtime: startRuntime(profile, start), seen: {} };
        const { runtime, seen } = run(profile, points, from);
        const times = edges.toSorted((a, b) => a - b).map((edge) => start + (edge - 60) * minute);
        const gaps = times.flatMap((toTs, n) => {
          const fromTs = times[n - 1];
          return n % 2 === 1 && fromTs !== undefined ? [{ fromTs, toTs }] : [];
        });
        const since = listenedSince(runtime) ?? Infinity;
        const late = gaps.filter(({ toTs }) => toTs > since);
        const nowTs = start + atMinute * minute;
        const withAll = explain(profile, runtime, seen, { nowTs, listening: { gaps } });
        expect(explain(profile, runtime, seen, { nowTs, listening: { gaps: late } })).toEqual(
          withAll,
        );
      },
    ),
  );
});

test('there is no such time if nothing waits for a tick', () => {
  const plain = profileOf(
    purposeWith({ evId: 1, causes: [{ sId: '0x1', thresholds: { isGt: 5 } }] }),
  );
  expect(listenedSince(startRuntime(plain, start))).toBeNull();
  expect(listenedSince(startRuntime(profile, start))).toBeLessThan(start);
});
