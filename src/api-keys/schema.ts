import { z } from 'zod';
import { scopes } from '../http/scope.ts';
import { timestamp } from '../http/schema.ts';

const Scopes = z
  .array(z.enum(scopes))
  .min(1, 'name at least one scope')
  .max(scopes.length)
  .overwrite((list) => [...new Set(list)]);

/** The body of POST /v2/accounts/keys. */
export const NewKey = z.object({
  name: z.string().min(1).max(200),
  scopes: Scopes,
  labels: z
    .array(z.string().min(1).max(64))
    .max(20)
    .default([])
    .meta({ description: 'Only devices with one of these labels; empty: all of the account.' }),
  expiresTs: timestamp.optional().meta({ description: 'Until then; absent: until it is revoked.' }),
});
export type NewKey = z.infer<typeof NewKey>;

export const MadeKey = z.object({
  keyId: z.guid(),
  key: z.string().meta({ description: 'Told this once. Sent as a bearer token.' }),
  timestamp,
});
export type MadeKey = z.infer<typeof MadeKey>;

const Key = z
  .object({
    keyId: z.guid(),
    name: z.string(),
    scopes: z.array(z.enum(scopes)),
    labels: z.array(z.string()),
    createdTs: timestamp,
    expiresTs: timestamp.nullable(),
    lastUsedTs: timestamp.nullable().meta({ description: 'To the minute; null: never.' }),
  })
  .meta({ id: 'ApiKey' });
export type Key = z.infer<typeof Key>;

export const KeyList = z.object({ keys: z.array(Key), timestamp });
