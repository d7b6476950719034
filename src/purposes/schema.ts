import { z } from 'zod';
import { timestamp, uuidParam } from '../http/schema.ts';

export const PurposeParams = z.object({ purposeUuid: uuidParam });

/** What is allowed, but probably a mistake; `path` is a JSON Pointer into what was sent. */
const Warnings = z.array(z.object({ path: z.string(), message: z.string() })).meta({
  description: 'What is allowed, but probably a mistake. Nothing was refused because of it.',
});

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
