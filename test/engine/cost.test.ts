import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkCosts } from '../../src/engine/check.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { measurements, purposes } from './arbitraries.ts';
import { encodeRuntime } from '../../src/engine/runtime-codec.ts';
import { number, profileOf, purposeWith, run } from './samples.ts';
import { runs } from '../support/share.ts';

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
])('counts the causes that read one sense at the same time: %s', (_name, states, expected) => {
  const problems = checkCosts([purposeOf(...states)], { ...roomy, causesPerMeasurement: 5 });
  expect(problems.map(({ path }) => path)).toEqual(expected.map((s) => `/purposes/0/states/${s}`));
});

test('evidence never takes more bytes than announced', () => {
  fc.assert(
    fc.property(purposes, measurements, (installed, stream) => {
      const profile = profileOf(...installed);
      for (const { runtime } of run(profile, stream).evaluations) {
        const bytes = Buffer.byteLength(encodeRuntime(profile, runtime));
        expect(checkCosts(installed, { ...roomy, evidenceBytes: bytes - 1 })).not.toEqual([]);
      }
    }),
    { numRuns: runs(300) },
  );
});

test('long windows count, and the figure is reported', () => {
  const long = { sId: 'a', measurement: { count: 1_000 }, thresholds: { isAny: true } };
  const events = [{ evId: 1, causes: Array.from({ length: 32 }, () => long) }];
  const purpose = Purpose.parse({ puId: 1, initStId: 1, states: [{ stId: 1, events }] });
  const [problem, ...others] = checkCosts([purpose], { ...roomy, evidenceBytes: 32_000 });
  expect(others).toEqual([]);
  expect(problem?.message).toMatch(/at most 32000 bytes, but this profile can reach 3[5-9]\d{3}$/);
  expect(checkCosts([purpose], { ...roomy, evidenceBytes: 40_000 })).toEqual([]);
});

const minute = 60_000;

/** The smallest limit in bytes that allows one such cause. */
function bytesOf(cause: object): number {
  const events = [{ evId: 1, causes: [{ sId: '0x1', ...cause }], actions: { alarm: true } }];
  const purpose = Purpose.parse({ puId: 1, initStId: 1, states: [{ stId: 1, events }] });
  const [problem] = checkCosts([purpose], { ...roomy, evidenceBytes: 1 });
  return Number(/reach (\d+)$/.exec(problem?.message ?? '')?.[1]);
}

test('a statistic counts 1 KiB, and time members count the times that they keep', () => {
  const thresholds = { isGt: 1 };
  const plain = bytesOf({ thresholds });
  const lasting = bytesOf({ thresholds, threshold: { forMs: minute } });
  const over = { ms: 60 * minute, stat: 'delta' };
  expect(lasting).toBeGreaterThan(plain);
  expect(bytesOf({ thresholds, threshold: { forMs: minute, over } })).toBe(lasting + 1_024);
  const counted = bytesOf({ thresholds, threshold: { count: 64, forMs: minute } });
  const aged = bytesOf({ thresholds, threshold: { count: 64, forMs: minute, maxAgeMs: minute } });
  expect(aged - counted).toBeGreaterThan(64 * 25);
});

test.each([
  ['forMs', { threshold: { forMs: 31 * 24 * 60 * minute, count: 60 }, thresholds: { isGt: 1 } }],
  ['noneForMs', { threshold: { noneForMs: minute } }],
  [
    'over',
    {
      threshold: { over: { ms: 60 * minute, stat: 'sum' }, forMs: 60 * minute },
      thresholds: { isGt: 1 },
    },
  ],
  [
    'maxAgeMs',
    {
      threshold: { maxAgeMs: 31 * 24 * 60 * minute, count: 2, relative: true },
      measurement: { count: 64 },
      thresholds: { isLt: 1_000_000 },
    },
  ],
])('evidence of %s takes no more bytes than announced', (_, cause) => {
  const told = bytesOf(cause);
  const profile = profileOf(
    purposeWith({ evId: 1, causes: [{ sId: '0x1', ...cause }], actions: { alarm: true } }),
  );
  const start = Date.UTC(2026, 0);
  const stream = Array.from({ length: 200 }, (_each, index) =>
    number(-7_654.321 + index * 1_234.567, start + index * 61_234),
  );
  let most = 0;
  for (const { runtime } of run(profile, stream).evaluations)
    most = Math.max(most, Buffer.byteLength(encodeRuntime(profile, runtime)));
  expect(most).toBeGreaterThan(100);
  expect(most).toBeLessThanOrEqual(told);
});
