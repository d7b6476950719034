import { z } from 'zod';
import type { Purpose } from '../contract/purpose.ts';
import { Warnings } from '../contract/warnings.ts';
import { exampleIds, timestamp, uuidParam } from '../http/schema.ts';

export const PurposeParams = z.object({
  purposeUuid: uuidParam.meta({ example: exampleIds.purpose }),
});

/** Specification section 4.5: the answer of Register New Purpose. */
export const RegisteredPurpose = z.object({
  purposeUuid: z.guid().meta({ example: exampleIds.purpose }),
  timestamp,
  warnings: Warnings,
});

export const UpdatedPurpose = z.object({ timestamp, warnings: Warnings });

/** Names and identifiers are in the same order; a purpose without a name has an empty one. */
export const PurposeList = z.object({
  purposeUuids: z.array(z.guid()),
  purposeNames: z.array(z.string()),
  timestamp,
});

/** For the reference: an alarm while it is too warm, of which nobody is told. */
export const examplePurpose: z.input<typeof Purpose> = {
  puId: 1,
  name: 'Cold room',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'Watched',
      events: [
        {
          evId: 1,
          name: 'Too warm',
          eventLog: true,
          actions: { alarm: true },
          causes: [{ sId: '0x01', threshold: { forMs: 60_000 }, thresholds: { isGt: 8 } }],
        },
      ],
    },
  ],
};
