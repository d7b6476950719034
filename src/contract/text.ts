import { z } from 'zod';

/**
 * A string that every store holds as it is: no NUL (PostgreSQL has none in text) and no half of a
 * surrogate pair (UTF-8 has none).
 */
export const Text = textOr();

/** The same with words of its own for what is no string. */
export function textOr(message?: string): z.ZodString {
  return z
    .string(message)
    .refine((text) => !text.includes('\0') && text.isWellFormed(), 'expected text without NUL');
}
