import { z } from 'zod';

/** Why nobody is told of a firing: the first of these that applies. */
export const NotNotified = z
  .enum([
    'same-episode',
    'too-old',
    'acknowledged',
    'snoozed',
    'held-back',
    'not-allowed',
    'not-configured',
    'no-recipient',
  ])
  .meta({ id: 'NotNotified' });
export type NotNotified = z.infer<typeof NotNotified>;
