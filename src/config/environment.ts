import { z } from 'zod';

const port = z
  .string()
  .regex(/^\d{1,5}$/, 'expected a port, 0 to 65535')
  .transform(Number)
  .refine((value) => value <= 65_535, 'expected a port, 0 to 65535');

/** A drain that takes longer than ten minutes is a mistake in the unit. */
const delayMs = z
  .string()
  .regex(/^\d{1,6}$/, 'expected milliseconds, 0 to 600000')
  .transform(Number)
  .refine((value) => value <= 600_000, 'expected milliseconds, 0 to 600000');

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

function url(protocols: string[], example: string) {
  return z.string().refine((text) => {
    const protocol = URL.parse(text)?.protocol;
    return protocol !== undefined && protocols.includes(protocol);
  }, `expected a URL such as ${example}`);
}

/** Every environment variable the service reads. One that is empty counts as absent. */
export const Environment = z.object({
  HTTP_HOST: z.string().default('0.0.0.0').describe('Address that HTTP listens on.'),
  HTTP_PORT: port.default(8080).describe('Port of HTTP; 0 takes any free one, as everywhere.'),
  MQTT_HOST: z.string().default('0.0.0.0').describe('Address that MQTT listens on.'),
  MQTT_PORT: z
    .union([z.literal('off'), port], 'expected a port, 0 to 65535, or off')
    .default(1883)
    .describe('Port of MQTT over plain TCP; off: devices come over TLS or a WebSocket alone.'),
  MQTTS_PORT: port.optional().describe('Port of MQTT over TLS; needs the two files below.'),
  MQTT_WS_PORT: port
    .optional()
    .describe(
      'Port of MQTT over a WebSocket (/mqtt) in a connector process; off if absent. npm start has it on HTTP_PORT.',
    ),
  TLS_CERT_FILE: z.string().optional().describe('Certificate chain (PEM) for MQTTS_PORT.'),
  TLS_KEY_FILE: z.string().optional().describe('Private key (PEM) for MQTTS_PORT.'),
  PUBLIC_HOST: z
    .string()
    .optional()
    .describe('Host that devices are told to connect to; this machine’s LAN address if absent.'),
  PUBLIC_URL: url(['http:', 'https:'], 'https://sensors.example.org')
    .refine((text) => /^\/*$/.test(URL.parse(text)?.pathname ?? ''), {
      error:
        'expected an address without a path, such as https://sensors.example.org: the console, its links and the ' +
        'reference are at the top of a host, so give the service a host name of its own',
    })
    .optional()
    .describe('Where links in mails lead; http, PUBLIC_HOST and HTTP_PORT if absent.'),
  SMTP_URL: url(['smtp:', 'smtps:'], 'smtps://user:password@mail.example.org')
    .optional()
    .describe('The mail server that mails are sent by; without it there are none.'),
  DATABASE_URL: url(['postgres:', 'postgresql:'], 'postgresql://user:password@host:5432/name')
    .optional()
    .describe('PostgreSQL or TimescaleDB; without it an embedded PostgreSQL runs in DATA_DIR.'),
  REDIS_URL: url(['redis:', 'rediss:'], 'redis://host:6379')
    .optional()
    .describe(
      'Redis or Valkey for sessions and between processes; needed by more than one process.',
    ),
  SECRET: z
    .string()
    .optional()
    .describe('What all keys are derived from, 32 bytes or more; required with DATABASE_URL.'),
  SECRET_FILE: z.string().optional().describe('A file that holds it, instead of SECRET.'),
  SECRET_PREVIOUS: z
    .string()
    .optional()
    .describe('The secret before this one: what it signed is still accepted.'),
  SECRET_PREVIOUS_FILE: z
    .string()
    .optional()
    .describe('A file that holds it, instead of SECRET_PREVIOUS.'),
  DATA_DIR: z
    .string()
    .optional()
    .describe('Where the embedded database and its secret are kept; ./data if absent.'),
  LOG_LEVEL: z
    .enum(logLevels, `expected one of ${logLevels.join(', ')}`)
    .default('info')
    .describe('Least severe level that is logged.'),
  METRICS_PORT: port.optional().describe('Port of Prometheus metrics at /metrics; off if absent.'),
  METRICS_HOST: z.string().default('127.0.0.1').describe('Address that metrics listen on.'),
  HEALTH_PORT: port
    .optional()
    .describe('Port of /livez and /readyz alone, for parts without HTTP too; off if absent.'),
  HEALTH_HOST: z.string().default('127.0.0.1').describe('Address that HEALTH_PORT listens on.'),
  DRAIN_DELAY_MS: delayMs
    .default(0)
    .describe('Time between “not ready” and the end of serving when asked to stop.'),
  STOP_TIMEOUT_MS: delayMs
    .optional()
    .describe(
      'Time to stop in, DRAIN_DELAY_MS included; 9000 (that delay + 5000 if more) if absent.',
    ),
  BROKER_HOOK_SECRET: z
    .string()
    .min(16, 'expected 16 characters or more')
    .optional()
    .describe('Lets an external MQTT broker ask /connector/…; those routes are off if absent.'),
  BRIDGE_SECRET: z
    .string()
    .min(16, 'expected 16 characters or more')
    .optional()
    .describe('What bridges show to that broker; BROKER_HOOK_SECRET if absent.'),
  CONFIG_FILE: z
    .string()
    .optional()
    .describe('A .json or .ts file laid over config/default.ts, instead of config/local.json.'),
});
export type Environment = z.infer<typeof Environment>;

/** Variables whose value must not be repeated in a message. */
export const secretVariables = [
  'SECRET',
  'SECRET_PREVIOUS',
  'BROKER_HOOK_SECRET',
  'BRIDGE_SECRET',
  'DATABASE_URL',
  'REDIS_URL',
  'SMTP_URL',
];
