import { expect, test } from 'vitest';
import { type Attempts, mayFollow, noteRedelivery, retryBounds } from '../../src/ingest/retry.ts';

test('redeliveries are expected for ten seconds after the last one', () => {
  const redeliveries = { untilMs: -Infinity };
  noteRedelivery(redeliveries, 5);
  expect(redeliveries.untilMs).toBe(10_005);
  noteRedelivery(redeliveries, 10_004);
  expect(redeliveries.untilMs).toBe(20_004);
});

test('the bounds are counted from the first attempt that stored nothing, and anew after a success', () => {
  let monotonicMs = 1_000;
  const attempts: Attempts = { failures: 0, sinceMs: 0 };
  const may = () =>
    mayFollow(attempts, { retry: { attempts: 3, forMs: 500 }, monotonicClock: () => monotonicMs });
  expect([may(), may(), may()]).toEqual([true, true, false]);
  attempts.failures = 0;
  expect(may()).toBe(true);
  monotonicMs += 500;
  expect(may()).toBe(false);
  expect(retryBounds).toEqual({ attempts: 100, forMs: 30_000 });
});
