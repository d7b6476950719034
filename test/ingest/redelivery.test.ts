import { expect, test } from 'vitest';
import { createRedeliveries } from '../../src/ingest/store/retry.ts';

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
