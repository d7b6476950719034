import { z } from 'zod';

/** What messages to people are written in. */
export const Language = z.enum(['en', 'de']).meta({ id: 'Language' });
export type Language = z.infer<typeof Language>;
