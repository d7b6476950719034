import { z } from 'zod';
import { NotificationSettings } from '../notifications/settings.ts';
import { QuotaSettings } from '../quotas/settings.ts';

const count = z.int().min(1);
const ms = z.int().min(1);
const networks = z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]));

/** A connector's name, and where devices find it; null: the address at which this process is reached. */
const Named = {
  id: z.int().min(1),
  name: z.string().min(1),
  host: z.string().min(1).nullable(),
  port: z.int().min(1).max(65_535).nullable(),
};
const Reached = { ...Named, protocol: z.enum(['mqtt', 'mqtts', 'ws', 'wss']) };

export const ConnectorSettings = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('mqtt'), ...Reached }),
  z.strictObject({ kind: z.literal('http'), ...Named, protocol: z.enum(['http', 'https']) }),
  z.strictObject({
    kind: z.literal('bridge'),
    ...Reached,
    /** The external broker, as this service reaches it. */
    broker: z.strictObject({
      url: z.url({ protocol: /^(mqtts?|wss?)$/ }),
      username: z.string().optional(),
      passwordFile: z.string().optional(),
      caFile: z.string().optional(),
      /** Bridges with the same name share the messages; null: one connects, the others stand by. */
      shareName: z
        .string()
        .regex(/^[^/+#]+$/, 'expected a name without "/", "+" and "#"')
        .nullable()
        .default('sensorium'),
    }),
  }),
]);
export type ConnectorSettings = z.infer<typeof ConnectorSettings>;

const Attempts = z.strictObject({ attempts: count, windowSeconds: count });

/** All settings of config/. config/default.ts has the defaults and explains each setting. */
export const Settings = z.strictObject({
  connectors: z
    .array(ConnectorSettings)
    .min(1)
    .refine(
      (all) => new Set(all.map(({ id }) => id)).size === all.length,
      'expected a different id for each connector',
    ),
  http: z.strictObject({
    trustedProxies: networks,
    corsOrigins: z.array(z.string()),
    bodyLimitBytes: count,
    headersTimeoutMs: ms,
    requestTimeoutMs: ms,
    connections: count,
    connectionsPerAddress: count,
  }),
  accounts: z.strictObject({
    openRegistration: z.boolean(),
    registrationsPerAddress: Attempts,
    failedLogins: z.strictObject({ perAccount: Attempts, perAddress: Attempts }),
  }),
  mqtt: z.strictObject({
    maxPacketBytes: count,
    maxMeasurementPacketBytes: count.max(262_144).nullable(),
    maxConnectBytes: count,
    connectTimeoutMs: ms,
    maxKeepaliveSeconds: z.int().min(1).max(65_535),
    maxConnectionsPerDevice: count,
    maxSubscriptions: count,
    maxTopicLevels: z.int().min(4),
    messagesPerSecond: z.number().positive(),
    messagesBurst: count,
    measurementsPerSecond: z.number().positive(),
    catchUp: z.boolean(),
    connectsPerSecond: z.number().positive(),
    connectingPerAddress: count,
    waitingPerAddress: count,
    refusedLoginsPerSecond: z.number().positive(),
    reconnectsPerSecond: z.number().positive(),
    reconnectsBurst: count,
    storeTimeoutMs: ms,
    trustedProxies: networks,
  }),
  ingest: z.strictObject({
    maxAheadMs: z.int().min(0),
    ringMaxAgeMs: z.int().min(0),
  }),
  alarms: z.strictObject({ reportedForMs: ms }),
  purposes: z.strictObject({ exploreMs: z.int().min(0) }),
  console: z.strictObject({
    enabled: z.boolean(),
    tiles: z
      .strictObject({
        url: z
          .url({ protocol: /^https?$/ })
          .refine(
            (url) => ['{z}', '{x}', '{y}'].every((part) => url.includes(part)),
            'expected {z}, {x} and {y}, such as https://tiles.example.org/{z}/{x}/{y}.png',
          )
          // A name of many machines would be another origin for each.
          .refine((url) => !/[{}]/.test(url.split('/', 3).join('/')), 'expected one host'),
        attribution: z.string().min(1),
      })
      .nullable(),
  }),
  audit: z.strictObject({ days: count }),
  memory: z
    .strictObject({
      deviceBytes: count.nullable(),
      requestBytes: count.nullable(),
      comeLaterAt: z.number().gt(0).lt(1),
      goOnAt: z.number().gt(0).lt(1),
    })
    .refine(({ comeLaterAt, goOnAt }) => goOnAt < comeLaterAt, 'expected goOnAt below comeLaterAt'),
  retention: z.strictObject({ eventsDays: count, measurementsDays: count }),
  database: z.strictObject({
    maxConnections: z.int().min(4),
    waitAtStartMs: z.int().min(0),
    connectTimeoutMs: ms,
    statementTimeoutMs: ms,
  }),
  notifications: NotificationSettings.strict(),
  quotas: QuotaSettings,
  quotasWhereClosed: QuotaSettings.partial(),
});
export type Settings = z.infer<typeof Settings>;

/** The same, but members with a default may be missing. */
export type SettingsInput = z.input<typeof Settings>;
