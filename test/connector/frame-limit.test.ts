import { expect, test } from 'vitest';
import { createFrameLimit } from '../../connector/mqtt/listeners.ts';
import { manualClock } from './harness.ts';

test('a frame limit allows a burst, then what a second earns; paid-off debt counts', () => {
  const clock = manualClock();
  const take = createFrameLimit({ perSecond: 10, burst: 100 }, clock.now);
  expect(take(100)).toBe(true);
  expect(take(1)).toBe(false);
  clock.monotonicMs += 1_000;
  expect(take(5)).toBe(true);
  expect(take(-90)).toBe(true);
  expect(take(80)).toBe(true);
});

test('nothing is saved up beyond a burst', () => {
  const clock = manualClock();
  const take = createFrameLimit({ perSecond: 10, burst: 100 }, clock.now);
  expect(take(-1_000)).toBe(true);
  expect(take(101)).toBe(false);
});
