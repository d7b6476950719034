import { expect, test } from 'vitest';
import type { Clock, MonotonicClock, MonotonicMs, WallMs } from '../../src/lib/clock-readings.ts';
import { monotonicClock, systemClock } from '../../src/lib/clock.ts';

const dateOf = (nowTs: WallMs) => nowTs;
const spentSince = (monotonicMs: MonotonicMs) => monotonicMs;

test('the type checker refuses a clock, and its readings, where the other one is expected', () => {
  expect(dateOf(systemClock())).toBeGreaterThan(0);
  expect(spentSince(monotonicClock())).toBeGreaterThan(0);
  // @ts-expect-error -- a monotonic reading is no date
  dateOf(monotonicClock());
  // @ts-expect-error -- the time of day jumps: nothing is measured by it
  spentSince(systemClock());
  // @ts-expect-error -- nor does the clock itself pass for the other
  const wall: Clock = monotonicClock;
  // @ts-expect-error -- nor this way round
  const monotonic: MonotonicClock = systemClock;
  expect(wall).not.toBe(monotonic);
});

test('a sum, a row or a literal passes for either without a cast', () => {
  expect(dateOf(systemClock() + 1_000)).toBeGreaterThan(dateOf(1_000));
  expect(spentSince(monotonicClock() + 1_000)).toBeGreaterThan(spentSince(0));
});
