import { z } from 'zod';
import { timestamp } from '../http/schema.ts';

/** The answer of GET /v2/accounts/usage. */
export const UsageList = z.object({
  usage: z.array(
    z
      .object({
        quota: z.string().meta({ description: 'As in refusals.', example: 'devices' }),
        limit: z.int(),
        used: z.int().nullable().meta({
          description:
            'Null for the size of one thing, and for what each process counts for itself.',
        }),
        level: z.enum(['near', 'used-up']).optional().meta({
          description: 'near: 80 % are in use. used-up: all of it is. Absent below.',
        }),
      })
      .meta({ id: 'QuotaUsage' }),
  ),
  timestamp,
});
export type UsageList = z.infer<typeof UsageList>;
