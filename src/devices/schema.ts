import { z } from 'zod';
import { Configuration } from '../contract/configuration.ts';
import { profileStates } from '../contract/profile.ts';
import { presences } from '../contract/presence.ts';
import { Purpose } from '../contract/purpose.ts';
import { deviceUuid, timestamp } from '../http/schema.ts';
import { deviceToken, Registration } from './registration-schema.ts';

/** Specification section 2.4; `ts` is the registration for a device that never reported. */
const DeviceState = z
  .object({ puId: z.int(), stId: z.int(), ts: timestamp })
  .meta({ id: 'DeviceState' });
export type DeviceState = z.infer<typeof DeviceState>;

const Device = z
  .object({
    uuid: deviceUuid,
    token: deviceToken,
    state: DeviceState,
    name: z.string(),
    labels: z.array(z.string()),
    serial: z.string().optional().meta({ description: 'In pages; empty where there is none.' }),
    connected: z.boolean().meta({
      description:
        'It has a connection, or a request of it waits for messages. One that only sends over HTTP has none.',
    }),
    presence: z.enum(presences).optional().meta({
      description: 'In pages: as the filter of that name; not in the list of all.',
    }),
    transport: z.enum(['mqtt', 'http', 'bridge']).optional().meta({
      description:
        'In pages: how it is connected or was heard last; before, what it was given to connect to.',
    }),
    protocol: z.string().optional().meta({
      description: 'In pages: that of the connector it was given.',
      example: 'mqtt',
    }),
    lastSeenTs: timestamp.nullable().meta({ description: 'Null when it never was.' }),
    openAlarms: z.int().optional().meta({
      description: 'In pages: its alarms that are not closed, acknowledged ones too.',
    }),
    alarmSinceTs: timestamp.optional().meta({
      description: 'In pages: since when the oldest of these lasts; absent where there is none.',
    }),
    refusedTs: timestamp.optional().meta({
      description:
        'In pages: when a login of it was refused last; absent where it was let in since.',
    }),
    mutedUntilTs: timestamp.optional().meta({
      description:
        'In pages: until then nobody is told of its events; absent where it is not muted.',
    }),
    mutedReason: z.string().optional().meta({ description: 'In pages: why, where that was said.' }),
  })
  .meta({ id: 'Device' });

export const DeviceList = z.object({
  devices: z.array(Device),
  counts: z
    .object({
      all: z.int(),
      matching: z.int().meta({ description: 'What the filters let through, on all pages.' }),
      online: z.int(),
      offline: z.int().meta({ description: 'Devices with that `presence`.' }),
      intermittent: z.int().meta({ description: 'Devices with that `presence`.' }),
      alarm: z.int().meta({ description: 'Devices with an alarm that is not closed.' }),
      refused: z.int().meta({ description: 'Devices with refusedTs.' }),
      muted: z.int().meta({ description: 'Devices with mutedUntilTs.' }),
      pendingProfile: z.int(),
    })
    .meta({ id: 'DeviceCounts' })
    .optional(),
  timestamp,
});
export type DeviceList = z.infer<typeof DeviceList>;

const connector = Registration.pick({
  connectorId: true,
  connectorName: true,
  protocol: true,
  host: true,
  port: true,
}).meta({ id: 'DeviceConnector', description: 'Where the device connects.' });

/** GET /v2/devices/{deviceAuthUuid}: as in the list, and what only one device is asked for. */
export const OneDevice = z.object({
  device: Device,
  connector,
  registeredTs: timestamp,
  configuredTs: timestamp.meta({ description: 'When its configuration changed last.' }),
  previousToken: z.boolean().meta({
    description: 'The token before the newest one is accepted too, until the newest is used.',
  }),
  profiles: z
    .array(
      z
        .object({
          pId: z.guid(),
          state: z.enum(profileStates),
          text: z.string().optional().meta({ description: "The device's words, if any." }),
          engine: z.enum(['service', 'device']),
          installedTs: timestamp,
          ts: timestamp.meta({ description: 'When it came to this state.' }),
        })
        .meta({ id: 'ProfileOfDevice' }),
    )
    .meta({ description: 'The ten that were installed last, newest first.' }),
  timestamp,
});
export type OneDevice = z.infer<typeof OneDevice>;

/** A profile as it stands on a device; empty where there is none. */
const ProfileOrEmpty = z.union([
  z
    .object({ pId: z.string(), purposes: z.array(Purpose), ts: timestamp })
    .meta({ id: 'DeviceProfile' }),
  z.strictObject({}).meta({ id: 'NoProfile' }),
]);

/** Specification section 2.4: the answer of Get Configuration. */
export const DescribedDevice = Configuration.safeExtend({
  currentProfile: ProfileOrEmpty.meta({ description: '`ts`: when it became current.' }),
  pendingProfile: ProfileOrEmpty.meta({ description: '`ts`: when it was installed.' }),
  state: DeviceState,
  timestamp,
});
export type DescribedDevice = z.infer<typeof DescribedDevice>;
