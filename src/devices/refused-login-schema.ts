import { z } from 'zod';
import { timestamp } from '../http/schema.ts';

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

export const RefusedLoginList = z.object({
  refusedLogins: z.array(
    z
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
      .meta({ id: 'RefusedLogin' }),
  ),
  timestamp,
});
export type RefusedLoginList = z.infer<typeof RefusedLoginList>;
