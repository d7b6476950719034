import { expect, test } from 'vitest';
import { Attempts, createRedeliveries, retryBounds } from '../../src/ingest/store/retry.ts';

test('repeats are expected for a while after one was met', () => {
  let nowMs = 5;
  const repeats = createRedeliveries(() => nowMs);
  expect(repeats.areExpected()).toBe(false);
  repeats.met();
  expect(repeats.areExpected()).toBe(true);
  nowMs += 9_999;
  repeats.met();
  nowMs += 9_999;
  expect(repeats.areExpected()).toBe(true);
  nowMs += 1;
  expect(repeats.areExpected()).toBe(false);
});

test('the bounds are counted from the first attempt that stored nothing, and anew after one that did', () => {
  let nowMs = 1_000;
  const attempts = new Attempts(
    { attempts: 3, forMs: 500 },
    {
      nowMs: () => nowMs,
      random: () => 0.5,
    },
  );
  expect([attempts.mayFollow(), attempts.mayFollow(), attempts.mayFollow()]).toEqual([
    true,
    true,
    false,
  ]);
  attempts.failures = 0;
  expect(attempts.mayFollow()).toBe(true);
  nowMs += 500;
  expect(attempts.mayFollow()).toBe(false);
  expect(retryBounds).toEqual({ attempts: 100, forMs: 30_000 });
});
