import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { readOrMakePrivateFile, readPrivateFile } from '../lib/private-file.ts';
import { messageOf } from '../lib/thrown.ts';
import { StartError } from '../start-error.ts';
import { minSecretBytes } from './keys.ts';

const howToMake = 'generate one with `openssl rand -base64 48` and keep it';

/**
 * The secret from the environment, or null if the data directory's own is used. Adds errors to `problems`, without ever
 * repeating a secret.
 */
export async function readSecret(env: Environment, problems: string[]): Promise<string | null> {
  if (env.SECRET !== undefined && env.SECRET_FILE !== undefined)
    problems.push('SECRET and SECRET_FILE: expected only one of them.');
  const secret = env.SECRET ?? (await readSecretFile('SECRET_FILE', env.SECRET_FILE, problems));
  checkLength(env.SECRET === undefined ? 'SECRET_FILE' : 'SECRET', secret, problems);
  if (secret !== undefined) return secret;
  if (env.DATABASE_URL !== undefined && env.SECRET_FILE === undefined)
    problems.push(
      'SECRET: required with DATABASE_URL, or SECRET_FILE instead. Use the secret that this database ' +
        `was used with; for a new database, ${howToMake}.`,
    );
  return null;
}

/** The previous secret; null if none is configured. Adds errors to `problems`. */
export async function readPreviousSecret(
  env: Environment,
  problems: string[],
): Promise<string | null> {
  const { SECRET_PREVIOUS: given, SECRET_PREVIOUS_FILE: file } = env;
  if (given !== undefined && file !== undefined)
    problems.push('SECRET_PREVIOUS and SECRET_PREVIOUS_FILE: expected only one of them.');
  const secret = given ?? (await readSecretFile('SECRET_PREVIOUS_FILE', file, problems));
  checkLength(given === undefined ? 'SECRET_PREVIOUS_FILE' : 'SECRET_PREVIOUS', secret, problems);
  return secret ?? null;
}

/** Where the secret comes from, for messages to people. */
export function placeOfSecret({ SECRET, SECRET_FILE }: Environment, dataDir: string): string {
  if (SECRET !== undefined) return 'SECRET';
  return SECRET_FILE === undefined ? secretFileIn(dataDir) : `SECRET_FILE ${SECRET_FILE}`;
}

/** The data directory's own secret; null if it has none. Throws a StartError. */
export async function findOwnSecret(dataDir: string): Promise<string | null> {
  const file = secretFileIn(dataDir);
  try {
    const secret = await readPrivateFile(file);
    return secret === null ? null : checkOwn(file, secret);
  } catch (error) {
    if (error instanceof StartError) throw error;
    const reason = messageOf(error);
    throw new StartError(`${file}: cannot be read (${reason}).`, { cause: error });
  }
}

/** The data directory's own secret, created if there is none. Only its owner can read it. */
export async function readOrMakeSecret(dataDir: string): Promise<string> {
  const file = secretFileIn(dataDir);
  const make = () => randomBytes(48).toString('base64');
  return checkOwn(file, await readOrMakePrivateFile(file, make));
}

/** The file of the data directory's own secret. */
export function secretFileIn(dataDir: string): string {
  return join(dataDir, 'secret');
}

function checkOwn(file: string, secret: string): string {
  if (Buffer.byteLength(secret) < minSecretBytes)
    throw new StartError(
      `${file}: expected ${minSecretBytes} bytes or more; restore it from a backup, or ` +
        `${howToMake} there.`,
    );
  return secret;
}

async function readSecretFile(
  name: string,
  file: string | undefined,
  problems: string[],
): Promise<string | undefined> {
  if (file === undefined) return undefined;
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    const reason = messageOf(error);
    problems.push(`${name}: cannot be read (${reason}).`);
    return undefined;
  }
}

function checkLength(name: string, secret: string | undefined, problems: string[]): void {
  if (secret !== undefined && Buffer.byteLength(secret) < minSecretBytes)
    problems.push(`${name}: expected ${minSecretBytes} bytes or more; ${howToMake}.`);
}

const port = z
  .string()
  .regex(/^\d{1,5}$/, 'expected a port, 0 to 65535')
  .transform(Number)
  .refine((value) => value <= 65_535, 'expected a port, 0 to 65535');

/** A drain longer than ten minutes is probably in the wrong unit. */
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

/** Every environment variable that the service reads. An empty one counts as absent. */
export const Environment = z.object({
  HTTP_HOST: z.string().default('0.0.0.0').describe('Address on which HTTP listens.'),
  HTTP_PORT: port
    .default(8080)
    .describe('Port of HTTP; 0 chooses any free port, for all ports here.'),
  MQTT_HOST: z.string().default('0.0.0.0').describe('Address on which MQTT listens.'),
  MQTT_PORT: z
    .union([z.literal('off'), port], 'expected a port, 0 to 65535, or off')
    .default(1883)
    .describe(
      'Port of MQTT over plain TCP; off: devices can connect only over TLS or a WebSocket.',
    ),
  MQTTS_PORT: port
    .optional()
    .describe('Port of MQTT over TLS; needs TLS_CERT_FILE and TLS_KEY_FILE.'),
  MQTT_WS_PORT: port
    .optional()
    .describe(
      'Port of MQTT over a WebSocket (/mqtt) in a connector process; off if absent. npm start ' +
        'serves it on HTTP_PORT.',
    ),
  TLS_CERT_FILE: z.string().optional().describe('Certificate chain (PEM) for MQTTS_PORT.'),
  TLS_KEY_FILE: z.string().optional().describe('Private key (PEM) for MQTTS_PORT.'),
  PUBLIC_HOST: z
    .string()
    .optional()
    .describe('Host to which devices are told to connect; this machine’s LAN address if absent.'),
  PUBLIC_URL: url(['http:', 'https:'], 'https://sensors.example.org')
    .refine((text) => /^\/*$/.test(URL.parse(text)?.pathname ?? ''), {
      error:
        'expected an address without a path, such as https://sensors.example.org: the console, its links and the ' +
        'reference are at the top of a host, so give the service a host name of its own',
    })
    .optional()
    .describe('Base address of links in mails; http://PUBLIC_HOST:HTTP_PORT if absent.'),
  SMTP_URL: url(['smtp:', 'smtps:'], 'smtps://user:password@mail.example.org')
    .optional()
    .describe('Mail server through which mails are sent; without it the service sends none.'),
  DATABASE_URL: url(['postgres:', 'postgresql:'], 'postgresql://user:password@host:5432/name')
    .optional()
    .describe('PostgreSQL or TimescaleDB; without it an embedded PostgreSQL runs in DATA_DIR.'),
  REDIS_URL: url(['redis:', 'rediss:'], 'redis://host:6379')
    .optional()
    .describe(
      'Redis or Valkey, for sessions and between processes; required with more than one process.',
    ),
  SECRET: z
    .string()
    .optional()
    .describe(
      'Secret from which all keys are derived, 32 bytes or more; required with DATABASE_URL.',
    ),
  SECRET_FILE: z.string().optional().describe('File that contains the secret, instead of SECRET.'),
  SECRET_PREVIOUS: z
    .string()
    .optional()
    .describe('The previous secret: what it signed is still accepted.'),
  SECRET_PREVIOUS_FILE: z
    .string()
    .optional()
    .describe('File that contains the previous secret, instead of SECRET_PREVIOUS.'),
  DATA_DIR: z
    .string()
    .optional()
    .describe('Directory of the embedded database and its secret; ./data if absent.'),
  LOG_LEVEL: z
    .enum(logLevels, `expected one of ${logLevels.join(', ')}`)
    .default('info')
    .describe('Least severe level that is logged.'),
  METRICS_PORT: port.optional().describe('Port of Prometheus metrics at /metrics; off if absent.'),
  METRICS_HOST: z.string().default('127.0.0.1').describe('Address on which metrics listen.'),
  HEALTH_PORT: port
    .optional()
    .describe('Port with only /livez and /readyz, for parts without HTTP too; off if absent.'),
  HEALTH_HOST: z.string().default('127.0.0.1').describe('Address on which HEALTH_PORT listens.'),
  DRAIN_DELAY_MS: delayMs
    .default(0)
    .describe('When asked to stop: time between “not ready” and the end of serving.'),
  STOP_TIMEOUT_MS: delayMs
    .optional()
    .describe(
      'Time within which to stop, DRAIN_DELAY_MS included; if absent 9000, or that delay + 5000 if more.',
    ),
  BROKER_HOOK_SECRET: z
    .string()
    .min(16, 'expected 16 characters or more')
    .optional()
    .describe(
      'Secret with which an external MQTT broker calls /connector/…; without it those routes are off.',
    ),
  BRIDGE_SECRET: z
    .string()
    .min(16, 'expected 16 characters or more')
    .optional()
    .describe('Password of bridges at that broker; BROKER_HOOK_SECRET if absent.'),
  CONFIG_FILE: z
    .string()
    .optional()
    .describe(
      'A .json or .ts file that overrides config/default.ts, instead of config/local.json.',
    ),
});
export type Environment = z.infer<typeof Environment>;

/** Variables whose values must not be repeated in messages. */
export const secretVariables = [
  'SECRET',
  'SECRET_PREVIOUS',
  'BROKER_HOOK_SECRET',
  'BRIDGE_SECRET',
  'DATABASE_URL',
  'REDIS_URL',
  'SMTP_URL',
];
