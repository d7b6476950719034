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
