import { z } from 'zod';
import { timestamp } from '../http/schema.ts';

const count = z.int().min(0);

export const ImportReceipt = z.object({
  stored: count,
  repeated: count.meta({ description: 'Lines that were stored already: they stay once.' }),
  rejected: count,
  errors: z
    .array(
      z.object({
        line: z.int().min(1).meta({ description: 'Counted from 1; of CSV that is the header.' }),
        reason: z.string().meta({ description: 'A code, a colon and what is wrong, for people.' }),
      }),
    )
    .max(100)
    .meta({ description: 'Why lines were rejected: the first hundred.' }),
  timestamp,
});
export type ImportReceipt = z.infer<typeof ImportReceipt>;
