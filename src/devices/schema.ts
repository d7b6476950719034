import { createHash } from 'node:crypto';
import { z } from 'zod';
import { Configuration } from '../contract/configuration.ts';
import { profileStates } from '../contract/profile.ts';
import { Purpose } from '../contract/purpose.ts';
import { Labels, presences } from '../contract/values.ts';
import { SomeWarnings } from '../contract/warnings.ts';
import { DomainError } from '../errors.ts';
import {
  cursorQuery,
  cursorText,
  deviceUuid,
  flagQuery,
  labelsQuery,
  limitQuery,
  optionalLimitQuery,
  stateQuery,
  timestamp,
  uuidParam,
} from '../http/schema.ts';

/** Where devices connect; the members of the registration answer, specification section 2.4. */
export type ConnectorAddress = {
  id: number;
  /** Only with kind `mqtt` do devices keep a connection that is visible here. */
  kind: 'mqtt' | 'http' | 'bridge';
  name: string;
  protocol: string;
  host: string;
  port: number;
};

/**
 * Picks a device's connector by rendezvous hashing: the one whose hash with the device's uuid is highest. Adding a
 * connector moves only the share of devices that it takes over. Throws if there is none.
 */
function pickConnector(
  connectors: readonly ConnectorAddress[],
  deviceUuid: string,
): ConnectorAddress {
  let picked: { connector: ConnectorAddress; score: bigint } | undefined;
  for (const connector of connectors) {
    const score = scoreOf(connector.id, deviceUuid);
    if (!picked || score > picked.score) picked = { connector, score };
  }
  if (!picked) throw new Error('no connector is configured');
  return picked.connector;
}

/** Ids of connectors whose devices keep no visible connection. */
export const intermittentAmong = (
  connectors: readonly Pick<ConnectorAddress, 'id' | 'kind'>[],
): number[] => connectors.filter(({ kind }) => kind !== 'mqtt').map(({ id }) => id);

/** The protocol that a registration may ask for. */
const AskedProtocol = z.enum(['mqtt', 'http']);
type AskedProtocol = z.infer<typeof AskedProtocol>;

const overHttp = ['http', 'https'];

/**
 * Picks a new device's connector among those with the requested protocol, or MQTT if it requested none. `path`: the
 * place of the request in the input. Throws `invalid-input` if no such connector is configured.
 */
export function pickAsked(
  connectors: readonly ConnectorAddress[],
  deviceUuid: string,
  asked: AskedProtocol | undefined,
  path = '/protocol',
): ConnectorAddress {
  const wantsHttp = asked === 'http';
  const suited = connectors.filter(({ protocol }) => overHttp.includes(protocol) === wantsHttp);
  if (suited.length > 0) return pickConnector(suited, deviceUuid);
  if (asked === undefined) return pickConnector(connectors, deviceUuid);
  const message = `no connector for ${asked} is configured here`;
  throw new DomainError('invalid-input', 'No such connector is available for the device.', {
    problems: [{ path, message }],
  });
}

function scoreOf(connectorId: number, deviceUuid: string): bigint {
  return createHash('sha256').update(`${connectorId}:${deviceUuid}`).digest().readBigUInt64BE();
}

const deviceToken = z.string().meta({
  description: 'The password of the device at its connector. Its user name is its uuid.',
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

/** The body of POST /v2/devices: the device's configuration, its protocol and its labels. */
export const NewRegistration = Configuration.safeExtend({
  protocol: AskedProtocol.optional().meta({
    description: "The device's protocol: the answer names a connector for it. MQTT if absent.",
  }),
  labels: Labels.default([]).meta({
    description: 'The labels that the device starts with; not part of its configuration.',
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

export const TokenRotation = z
  .object({
    revoke: z
      .boolean()
      .default(false)
      .meta({
        description:
          'Whether the old token stops working at once. Otherwise it works until the new one is ' +
          'first used.',
      }),
  })
  .prefault({});

export const RotatedToken = z.object({ deviceAuthToken: deviceToken, timestamp });

/** For the API reference: a device with two senses. */
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

export const exampleRegistration: z.input<typeof NewRegistration> = {
  ...exampleConfiguration,
  labels: ['cellar'],
};

/** Specification section 2.4. For a device that never reported, `ts` is the time of registration. */
const DeviceState = z
  .object({ puId: z.int(), stId: z.int(), ts: timestamp })
  .meta({ id: 'DeviceState' });
type DeviceState = z.infer<typeof DeviceState>;

/**
 * Text members of a configuration's `device` that pages of the list show and its `search` looks in, beside the name.
 * Each has a column of `device`, so that neither reads whole configurations: the trigger `set_device_serial` writes it.
 */
export const searchedMembers = {
  serial: { column: 'serial', what: 'the serial number' },
} satisfies Partial<Record<keyof Configuration['device'], { column: string; what: string }>>;
export type SearchedMember = keyof typeof searchedMembers;

/** Members of a configuration that a filter may name exactly, and the column of each. */
export const exactMembers = {
  swName: 'sw_name',
  swVersion: 'sw_version',
  hwVersion: 'hw_version',
} satisfies Partial<Record<keyof Configuration['device'], string>>;
type ExactMember = keyof typeof exactMembers;

const inPages = z.string().optional().meta({ description: 'In pages; empty if there is none.' });

const Device = z
  .object({
    uuid: deviceUuid,
    token: deviceToken,
    state: DeviceState,
    name: z.string(),
    labels: z.array(z.string()),
    ...(Object.fromEntries(Object.keys(searchedMembers).map((name) => [name, inPages])) as {
      [Name in SearchedMember]: typeof inPages;
    }),
    connected: z.boolean().meta({
      description:
        'The device has a connection, or one of its requests waits for messages. A device that ' +
        'only sends over HTTP is never connected.',
    }),
    presence: z.enum(presences).optional().meta({
      description: 'In pages only: as the filter of the same name.',
    }),
    transport: z
      .enum(['mqtt', 'http', 'bridge'])
      .optional()
      .meta({
        description:
          'In pages: how it is connected or was last heard; before that, which protocol it was ' +
          'assigned.',
      }),
    protocol: z.string().optional().meta({
      description: 'In pages: the connector it was assigned.',
      example: 'mqtt',
    }),
    lastSeenTs: timestamp.nullable().meta({ description: 'Null if it has never been seen.' }),
    openAlarms: z.int().optional().meta({
      description: 'In pages: its alarms that are not closed, including acknowledged ones.',
    }),
    alarmSinceTs: timestamp.optional().meta({
      description:
        'In pages: since when the oldest open alarm lasts (its `beganTs`); absent if there is none.',
    }),
    alarmName: z.string().optional().meta({
      description: 'In pages: the event of the most severe open alarm, of several the oldest.',
    }),
    stateName: z.string().optional().meta({
      description:
        'In pages: the name of `state` in the current profile; absent if its purpose has only one state.',
    }),
    limitsFrom: z
      .union([z.object({ label: z.string() }).meta({ id: 'LimitsFromLabel' }), z.literal('own')])
      .nullable()
      .optional()
      .meta({
        description:
          'In pages: where the newest profile comes from. A label: see `/v2/devices/labels/limits`. own: somebody installed ' +
          'it on the device. null: it has none, or one without purposes.',
      }),
    refusedTs: timestamp.optional().meta({
      description:
        'In pages: when a login of the device was last refused; absent if it has logged in since.',
    }),
    mutedUntilTs: timestamp.optional().meta({
      description:
        'In pages: nobody is notified of its events until then; absent if it is not muted.',
    }),
    mutedReason: z
      .string()
      .optional()
      .meta({ description: 'In pages: the reason, if one was given.' }),
  })
  .meta({ id: 'Device' });

export const DeviceList = z.object({
  devices: z.array(Device),
  counts: z
    .object({
      all: z.int().meta({ description: 'All devices, whatever the filters.' }),
      within: z.int().meta({
        description:
          'Those that match the filters but `presence`, `online`, `alarm`, `refused`, `muted` and `profile`. The numbers ' +
          'below are of these.',
      }),
      matching: z.int().meta({ description: 'The number of matching devices on all pages.' }),
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

/** GET /v2/devices/{deviceAuthUuid}: the entry of the list, and more that only this route returns. */
export const OneDevice = z.object({
  device: Device,
  connector,
  registeredTs: timestamp,
  configuredTs: timestamp.meta({ description: 'When its configuration last changed.' }),
  previousToken: z.boolean().meta({
    description: 'Whether the previous token is accepted too, until the newest one is first used.',
  }),
  profiles: z
    .array(
      z
        .object({
          pId: z.guid(),
          state: z.enum(profileStates),
          text: z
            .string()
            .optional()
            .meta({ description: "The device's own explanation, if it gave one." }),
          engine: z.enum(['service', 'device']),
          installedTs: timestamp,
          ts: timestamp.meta({ description: 'When the profile entered this state.' }),
        })
        .meta({ id: 'ProfileOfDevice' }),
    )
    .meta({ description: 'The ten most recently installed, newest first.' }),
  timestamp,
});
export type OneDevice = z.infer<typeof OneDevice>;

/** A profile of a device; empty if there is none. */
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

const sortKeys = ['name', 'lastSeenTs', 'registeredTs'] as const;

type SortKey = (typeof sortKeys)[number];

const Sort = z
  .union(
    [
      z.enum([...sortKeys, ...sortKeys.map((key) => `-${key}` as const)]),
      z
        .string()
        .max(300)
        .regex(/^-?value:./v),
    ],
    'expected name, lastSeenTs, registeredTs or value:sId, with or without a leading -',
  )
  .transform((text): { key: SortKey | 'value'; sId?: string; isDescending: boolean } => {
    const isDescending = text.startsWith('-');
    const named = isDescending ? text.slice(1) : text;
    return named.startsWith('value:')
      ? { key: 'value', sId: named.slice('value:'.length), isDescending }
      : { key: named as SortKey, isDescending };
  })
  .meta({
    description:
      '`registeredTs` if absent; a leading `-` sorts in descending order. `value:sId`: by the newest number of a sense; ' +
      'devices without one come last. A device whose value changes may be on two pages, or on none.',
  });

/** Where a page ends: the sort key as text, and the device. */
const FleetCursor = z.tuple([cursorText, z.int().min(1)]);

const searchedParts = Object.values(searchedMembers)
  .map(({ what }) => `or of ${what}`)
  .join(' ');

const exactly = (name: string) =>
  z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: `Only devices whose configuration has this \`device.${name}\`.` });

/** `sId:gt:number` or `sId:lt:number`; an `sId` may contain colons. */
const valueFilter = /^(?<sId>.+):(?<than>gt|lt):(?<limit>-?\d+(?:\.\d+)?(?:e-?\d+)?)$/iv;

const ValueQuery = z
  .string()
  .max(300)
  .regex(valueFilter, 'expected sId:gt:number or sId:lt:number, such as 0x10:gt:8')
  .transform((text) => {
    const { sId = '', than, limit } = valueFilter.exec(text)?.groups ?? {};
    return { sId, isGreater: than?.toLowerCase() === 'gt', number: Number(limit) };
  })
  .refine(
    ({ number }) => Number.isFinite(number),
    'expected sId:gt:number or sId:lt:number, with a smaller number',
  )
  .meta({
    description: 'Only devices whose newest value of a sense is greater, or less, than a number.',
    example: '0x10:gt:8',
  });

/** The parameters of GET /v2/devices. Without any, the answer is that of the specification. */
export const FleetQuery = z.object({
  search: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({
      description: `A part of the name ${searchedParts}, or the start of the uuid.`,
    }),
  label: labelsQuery,
  online: flagQuery(
    'Only devices that are connected, or only those that are not; `presence` distinguishes ' +
      'three states.',
  ),
  presence: z
    .enum(presences)
    .optional()
    .meta({
      description:
        'online: connected, or one of its requests waits for messages. offline: it uses MQTT ' +
        'and is not connected. intermittent: it sends over HTTP or through a bridge, so the ' +
        'service cannot tell.',
    }),
  alarm: z.literal('open').optional().meta({
    description: 'Only devices with an alarm that is not closed, including acknowledged ones.',
  }),
  refused: flagQuery(
    'Only devices whose newest login was refused, or only the others: see refusedTs.',
  ),
  muted: flagQuery('Only devices that are muted now, or only the others.'),
  state: stateQuery.optional().meta({
    description: 'Only devices whose purpose engine is in this state: puId:stId',
  }),
  ...(Object.fromEntries(Object.keys(exactMembers).map((name) => [name, exactly(name)])) as {
    [Name in ExactMember]: ReturnType<typeof exactly>;
  }),
  value: ValueQuery.optional(),
  beyond: flagQuery(
    'Only devices whose newest value of a sense is above `above` or below `below`, as ' +
      '`GET /v2/measurements/latest?describe=true` says them, or only the others.',
  ),
  profile: z
    .union(
      [z.enum(['pending', 'current', 'none']), uuidParam],
      'expected pending, current, none or the pId of a profile',
    )
    .optional()
    .meta({
      description:
        'pending: a profile waits for an answer; current: a profile is running; none: neither, or one without purposes. A ' +
        '`pId`: devices that run, or wait for, that profile or one with the same purposes.',
    }),
  purpose: z.string().min(1).max(200).optional().meta({
    description: 'Only devices that run, or wait for, a profile with a purpose of this name.',
  }),
  sort: Sort.optional(),
  counts: flagQuery(
    'Adds how many devices there are, how many match the filters, and how many of each kind match those that name no kind: ' +
      '`search`, `label`, `state`, `purpose`, `profile` with a `pId`, `value`, `beyond`, `swName`, `swVersion` and `hwVersion`.',
  ),
  // No default: a request without any parameter must not be answered with a page.
  limit: optionalLimitQuery(1_000, 'At most 1000; 100 if absent.'),
  cursor: cursorQuery(FleetCursor),
});
export type FleetQuery = z.output<typeof FleetQuery>;

/** The same for a device that does not exist and for one that belongs to another account. */
export function noSuchDevice(): DomainError {
  return new DomainError('not-found', 'There is no such device.');
}

/** Why a device's login is refused. */
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
      description:
        'The address the login came from; absent if a broker in front did not report it.',
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
        description: 'Its name; absent if an earlier version of the service removed it.',
      }),
      removedTs: timestamp,
    }).meta({ id: 'RefusedLoginOfRemoved' }),
  ),
  timestamp,
});
export type RemovedLoginList = z.infer<typeof RemovedLoginList>;

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
        more: z
          .int()
          .optional()
          .meta({
            description:
              'How many rejections of the same message or the same minute, which are not kept ' +
              'individually, this entry stands for.',
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
              'The values in `message`, so that it can be translated: `min` and `max` as they ' +
              'were then.',
          }),
        payload: z.string().meta({
          description:
            'The first KiB of the message; once per message all of it, if the database ' +
            'rejected an item.',
        }),
      })
      .meta({ id: 'Rejection' }),
  ),
  timestamp,
});
export type RejectionList = z.infer<typeof RejectionList>;
