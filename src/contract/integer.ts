import { z } from 'zod';

/**
 * Whole numbers. Not zod's own: a fraction would end the parsing there, and what else is wrong would
 * not be listed.
 */
export function integer(min: number, max: number) {
  return z
    .number()
    .multipleOf(1, 'expected a whole number')
    .min(min)
    .max(max)
    .meta({ type: 'integer' });
}

/** What the database's `integer` and a firmware's `int32_t` hold alike. */
export const integer32 = integer(-(2 ** 31), 2 ** 31 - 1);

const longest = { ms: 31 * 24 * 60 * 60_000, words: '31 days' };
type Limit = typeof longest;

/** How long something lasts, in ms. The limits are told in words too: many write seconds. */
export function duration(least: Limit, most: Limit = longest) {
  return z
    .number()
    .multipleOf(1, 'expected a whole number of milliseconds')
    .min(least.ms, `expected milliseconds, at least ${least.ms} (${least.words})`)
    .max(most.ms, `expected milliseconds, at most ${most.ms} (${most.words})`)
    .meta({ type: 'integer' });
}

export const oneSecond: Limit = { ms: 1_000, words: '1 s' };
export const oneMinute: Limit = { ms: 60_000, words: '1 minute' };
