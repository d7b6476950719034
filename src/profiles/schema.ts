import { z } from 'zod';
import { profileStates } from '../contract/profile.ts';
import { Purpose } from '../contract/purpose.ts';
import { Warnings } from '../contract/warnings.ts';
import { deviceUuid, exampleIds, timestamp, uuidParam } from '../http/schema.ts';

export const ProfileParams = z.object({ pId: uuidParam.meta({ example: exampleIds.profile }) });

/** Specification section 4.3: the body of Install device profile. */
export const ProfileInstall = z
  .object({
    deviceAuthUuids: z.array(z.string()).min(1, 'name at least one device').max(20_000),
    purposeUuids: z.array(z.string()).max(256).default([]),
    purposes: z.array(Purpose).max(256).default([]),
  })
  .refine((body) => body.purposeUuids.length + body.purposes.length > 0, {
    message: 'give at least one purpose, here or in purposes',
    path: ['purposeUuids'],
  });
export type ProfileInstall = z.infer<typeof ProfileInstall>;

export const InstalledProfile = z.object({
  timestamp,
  state: z.literal('pending'),
  pId: z.guid().meta({ example: exampleIds.profile }),
  warnings: Warnings,
});

export const RollOut = z.object({
  pId: z.guid(),
  devices: z.array(
    z
      .object({
        deviceAuthUuid: deviceUuid,
        state: z.enum(profileStates),
        text: z.string().optional().meta({ description: "The device's words, where it had any." }),
        ts: timestamp.meta({ description: 'When it came to this state.' }),
      })
      .meta({ id: 'RollOutDevice' }),
  ),
  timestamp,
});
