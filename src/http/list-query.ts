import { z } from 'zod';
import { exampleIds } from './schema.ts';

/** Names with commas in between, each once. */
export const namesOf = (text: string) =>
  [...new Set(text.split(',').map((name) => name.trim()))].filter(Boolean);

/** `senses` of a query. */
export const sensesQuery = z
  .string()
  .transform(namesOf)
  .refine((senses) => senses.length <= 256, 'names more than 256 senses')
  .optional()
  .meta({ description: 'Only these senses: 0x1a,0x1b' });

/** `devices` of a query, by their identifiers. */
export const devicesQuery = (most: number) =>
  z
    .string()
    .transform(namesOf)
    .pipe(z.array(z.guid('is no deviceAuthUuid').toLowerCase()).min(1).max(most))
    .optional()
    .meta({
      description: `Only these devices, ${most} at most, by \`deviceAuthUuid\` with commas.`,
      example: exampleIds.device,
    });
