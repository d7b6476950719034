import { expect, test } from 'vitest';
import { createRepeats } from '../../src/ingest/repeats.ts';

test('repeats are expected for a while after one was met', () => {
  let nowMs = 5;
  const repeats = createRepeats(() => nowMs);
  expect(repeats.areExpected()).toBe(false);
  expect(repeats.met()).toBe(true);
  expect(repeats.areExpected()).toBe(true);
  nowMs += 9_999;
  expect(repeats.met()).toBe(false);
  nowMs += 9_999;
  expect(repeats.areExpected()).toBe(true);
  nowMs += 1;
  expect(repeats.areExpected()).toBe(false);
  expect(repeats.met()).toBe(true);
});
