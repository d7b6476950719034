import { z } from 'zod';
import { deviceUuid, limitQuery, timestamp } from '../http/schema.ts';

/** Why logins of devices are refused. */
export const refusalReasons = [
  'wrong-token',
  'retired-token',
  'device-removed',
  'account-disabled',
  'too-many-connects',
  'too-many-connections',
  'foreign-will',
  'no-client-identifier',
] as const;

const RefusedLogin = z
  .object({
    timestamp: timestamp.meta({ description: 'The newest of them.' }),
    firstTs: timestamp,
    count: z.int(),
    reason: z.string().meta({ examples: [...refusalReasons] }),
    message: z.string(),
    address: z.string().optional().meta({
      description: 'Where it came from; absent where a broker in front did not tell.',
      example: '192.0.2.7',
    }),
  })
  .meta({ id: 'RefusedLogin' });
export type RefusedLogin = z.infer<typeof RefusedLogin>;

export const RefusedLoginList = z.object({ refusedLogins: z.array(RefusedLogin), timestamp });
export type RefusedLoginList = z.infer<typeof RefusedLoginList>;

/** The query and the answer of GET /v2/devices/removed/refused-logins. */
export const RemovedLoginsQuery = z.object({ limit: limitQuery(1_000) });

export const RemovedLoginList = z.object({
  refusedLogins: z.array(
    RefusedLogin.extend({
      deviceAuthUuid: deviceUuid,
      name: z.string().optional().meta({
        description:
          'What it was called; absent where it was removed by an earlier version of the service.',
      }),
      removedTs: timestamp,
    }).meta({ id: 'RefusedLoginOfRemoved' }),
  ),
  timestamp,
});
export type RemovedLoginList = z.infer<typeof RemovedLoginList>;
