import { expect, test } from 'vitest';
import { describeDuration } from '../../src/engine/explain.ts';
import { describedCause } from './described-cause.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const now = 1_700_000_000_000;

test.each([
  [0, '0 s'],
  [-5, '0 s'],
  [999, '0 s'],
  [second, '1 s'],
  [4 * minute + 10 * second, '4 min 10 s'],
  [10 * minute, '10 min'],
  [hour + 5 * second, '1 h'],
  [25 * hour + minute, '1 d 1 h'],
  [31 * day, '31 d'],
])('%d ms are %s', (ms, words) => {
  expect(describeDuration(ms)).toBe(words);
});

test.each([
  [3 * minute + 59 * second, 10 * minute, '3 of 10 minutes'],
  [12 * minute, 15 * minute, '12 of 15 minutes'],
  [20 * minute, 15 * minute, '15 of 15 minutes'],
  [-1, 90 * second, '0 of 90 seconds'],
  [61 * minute, 90 * minute, '61 of 90 minutes'],
  [3 * hour, 150 * minute, '150 of 150 minutes'],
  [47 * hour, 48 * hour, '47 of 48 hours'],
  [47 * hour, 7 * day, '1 of 7 days'],
  [999, 1_500, '0 of 1 seconds'],
])('%d of %d ms are %s', (done, of, words) => {
  const members = { forMs: of, sinceTs: now - done };
  expect(describedCause(members, now)).toBe(`agrees for ${words}, 1 is missing`);
});
