import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkCosts } from '../../src/engine/cost.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { measurements, purposes } from './arbitraries.ts';
import { profileOf, run } from './samples.ts';

const roomy = { causesPerMeasurement: 1_000_000, evidenceBytes: 1_000_000_000 };

const causes = (sId: string, count: number) =>
  Array.from({ length: count }, () => ({ sId, thresholds: { isAny: true } }));
const state = (stId: number, isGlobal: boolean, ...reads: [string, number][]) => ({
  stId,
  isGlobal,
  events: reads.map(([sId, count], evId) => ({ evId, causes: causes(sId, count) })),
});
const purposeOf = (...states: ReturnType<typeof state>[]) =>
  Purpose.parse({ puId: 1, initStId: states[0]?.stId, states });

test.each([
  ['within the limit', [state(1, false, ['a', 5], ['b', 5])], []],
  ['in one state', [state(1, false, ['a', 5]), state(2, false, ['a', 3], ['a', 3])], ['1']],
  ['with the global ones', [state(1, false, ['a', 3]), state(2, true, ['a', 3])], ['0']],
  ['of global states together', [state(1, true, ['a', 3]), state(2, true, ['a', 3])], ['0', '1']],
  [
    'of another sense than the global ones',
    [state(1, false, ['b', 3]), state(2, true, ['a', 5])],
    [],
  ],
  ['of a state without events', [state(1, false), state(2, true, ['a', 6])], ['0', '1']],
])('causes on one sense that are live at once: %s', (_name, states, expected) => {
  const problems = checkCosts([purposeOf(...states)], { ...roomy, causesPerMeasurement: 5 });
  expect(problems.map(({ path }) => path)).toEqual(expected.map((s) => `/purposes/0/states/${s}`));
});

test('evidence never takes more bytes than were told before', () => {
  fc.assert(
    fc.property(purposes, measurements, (installed, stream) => {
      for (const { runtime } of run(profileOf(...installed), stream).evaluations) {
        const bytes = Buffer.byteLength(JSON.stringify(runtime));
        expect(checkCosts(installed, { ...roomy, evidenceBytes: bytes - 1 })).not.toEqual([]);
      }
    }),
    { numRuns: 300 },
  );
});

test('long windows count, and the figure is told', () => {
  const long = { sId: 'a', measurement: { count: 1_000 }, thresholds: { isAny: true } };
  const events = [{ evId: 1, causes: Array.from({ length: 32 }, () => long) }];
  const purpose = Purpose.parse({ puId: 1, initStId: 1, states: [{ stId: 1, events }] });
  const [problem, ...others] = checkCosts([purpose], { ...roomy, evidenceBytes: 32_000 });
  expect(others).toEqual([]);
  expect(problem?.message).toMatch(/at most 32000 bytes, here it can become 3[5-9]\d{3}$/);
  expect(checkCosts([purpose], { ...roomy, evidenceBytes: 40_000 })).toEqual([]);
});

test('a statistic counts 1 KiB, and what keeps times counts these', () => {
  const bytesOf = (threshold: object) => {
    const thresholds = 'noneForMs' in threshold ? {} : { isGt: 1 };
    const events = [{ evId: 1, causes: [{ sId: 'a', threshold, thresholds }] }];
    const purpose = Purpose.parse({ puId: 1, initStId: 1, states: [{ stId: 1, events }] });
    const [problem] = checkCosts([purpose], { ...roomy, evidenceBytes: 1 });
    return Number(/become (\d+)$/.exec(problem?.message ?? '')?.[1]);
  };
  const plain = bytesOf({});
  expect(bytesOf({ over: { ms: 3_600_000, stat: 'delta' } })).toBe(plain + 1_024);
  expect(bytesOf({ forMs: 60_000 })).toBeGreaterThan(plain);
  expect(bytesOf({ noneForMs: 60_000 })).toBeGreaterThan(plain);
  const counted = bytesOf({ count: 64 });
  expect(bytesOf({ count: 64, maxAgeMs: 60_000 })).toBeGreaterThan(counted + 64 * 13);
});
