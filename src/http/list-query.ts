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

/** Devices that a query names: as many fit into the 16 KiB that the head of a request has, with %2C in between too. */
const maxQueryDevices = 400;

/** `devices` of a query, by their identifiers. */
export const devicesQuery = z
  .string()
  .transform(namesOf)
  .pipe(
    z
      .array(z.guid('is no deviceAuthUuid').toLowerCase())
      .min(1)
      .max(maxQueryDevices, `names more than ${maxQueryDevices} devices`),
  )
  .optional()
  .meta({
    description: `Only these devices, ${maxQueryDevices} at most, by \`deviceAuthUuid\` with commas.`,
    example: exampleIds.device,
  });

const maxLabelLength = 64;

/** `label` of a query. It is one: a comma is part of it (`refuseLabelList`). */
export const labelQuery = z
  .string()
  .min(1)
  .refine(
    (label) => Array.from(label).length <= maxLabelLength,
    `expected at most ${maxLabelLength} characters`,
  )
  .optional()
  .meta({ description: 'Only devices with this label: one, a comma is part of it.' });
