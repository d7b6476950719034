import { z } from 'zod';
import { limitQuery, timestamp } from '../http/schema.ts';

export const RejectionsQuery = z.object({ limit: limitQuery(1_000) });

export const RejectionList = z.object({
  rejections: z.array(
    z
      .object({
        timestamp,
        topic: z.string(),
        reason: z.string(),
        message: z.string(),
        path: z.string().optional(),
        more: z.int().optional().meta({
          description:
            'It stands for so many of the same message, or of the same minute, which are not kept one by one.',
        }),
        details: z
          .object({
            sId: z.string().optional(),
            val: z.number().optional(),
            min: z.number().optional(),
            max: z.number().optional(),
            ts: timestamp.optional(),
            maxAheadMs: z.int().optional(),
            maxAgeMs: z.int().optional(),
          })
          .meta({ id: 'RejectionDetails' })
          .optional()
          .meta({
            description:
              'The values that `message` names, to say it in another language: `min` and `max` as they were then.',
          }),
        payload: z.string().meta({
          description:
            'The first KiB of what was sent; all of it, once a message, where the database refused an item.',
        }),
      })
      .meta({ id: 'Rejection' }),
  ),
  timestamp,
});
export type RejectionList = z.infer<typeof RejectionList>;
