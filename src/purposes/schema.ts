import { z } from 'zod';
import { Warnings } from '../contract/warning.ts';
import { timestamp, uuidParam } from '../http/schema.ts';

export const PurposeParams = z.object({ purposeUuid: uuidParam });

/** Specification section 4.5: the answer of Register New Purpose. */
export const RegisteredPurpose = z.object({
  purposeUuid: z.guid(),
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
