import { z } from 'zod';

/**
 * A string that every store holds as it is: no NUL (PostgreSQL has none in text) and no half of a
 * surrogate pair (UTF-8 has none).
 */
export const Text = z
  .string()
  .refine((text) => !text.includes('\0') && text.isWellFormed(), 'expected text without NUL');
