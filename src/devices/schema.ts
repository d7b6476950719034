import { z } from 'zod';
import { Configuration } from '../contract/configuration.ts';
import { profileStates } from '../contract/profile-state.ts';
import { SomeWarnings } from '../contract/warning.ts';
import { Purpose } from '../contract/purpose.ts';
import { deviceUuid, limitQuery, timestamp } from '../http/schema.ts';
import { AskedProtocol } from './pick-connector.ts';

const deviceToken = z.string().meta({
  description: 'The password of the device at its connector; its user name is its uuid.',
});

/** Specification section 2.4: the answer of Register Device. */
export const Registration = z.object({
  connectorId: z.int(),
  connectorName: z.string(),
  protocol: z.string().meta({ example: 'mqtt' }),
  host: z.string(),
  port: z.int(),
  deviceAuthUuid: deviceUuid,
  deviceAuthToken: deviceToken,
  timestamp,
  warnings: SomeWarnings,
});
export type Registration = z.infer<typeof Registration>;

/** The body of POST /v2/devices: how the device describes itself, and what it speaks. */
export const NewRegistration = Configuration.safeExtend({
  protocol: AskedProtocol.optional().meta({
    description:
      'What the device speaks: the answer names a connector for it. MQTT where it is absent.',
  }),
}).meta({ id: 'NewRegistration' });

export type NewRegistration = z.infer<typeof NewRegistration>;

/** The body of POST /v2/devices/batch. */
export const DeviceBatch = z.object({ devices: z.array(NewRegistration).min(1).max(1_000) });

export const BatchRegistration = z.object({
  devices: z.array(
    Registration.omit({ timestamp: true, warnings: true }).meta({ id: 'RegisteredDevice' }),
  ),
  timestamp,
  warnings: SomeWarnings,
});

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
      description: 'It has a connection that lasts. One that sends over HTTP has none.',
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
      offline: z.int(),
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

export const TokenRotation = z
  .object({
    revoke: z.boolean().default(false).meta({
      description:
        'The old token opens nothing from now on; otherwise it does until the new one is first used.',
    }),
  })
  .prefault({});

export const RotatedToken = z.object({ deviceAuthToken: deviceToken, timestamp });

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

/** For the reference: a room with two senses. */
export const exampleConfiguration: z.input<typeof Configuration> = {
  device: { name: 'Cold room', swName: 'probe', swVersion: '1.0', hwVersion: 'A', serial: 'CR-1' },
  module: [
    {
      moduleId: 'climate',
      moduleName: 'Climate',
      senses: [
        { sId: '0x01', name: 'Temperature', unit: '°C', decimals: 1, min: -40, max: 85 },
        { sId: '0x02', name: 'Humidity', unit: '%', decimals: 0, min: 0, max: 100 },
      ],
    },
  ],
};
