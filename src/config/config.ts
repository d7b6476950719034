import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { extname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { findLanAddress } from '../lib/address.ts';
import { findJsonError, tellJsonError } from '../lib/json.ts';
import { decodeUtf8 } from '../lib/utf8.ts';
import { describeIssue } from '../lib/schema.ts';
import { StartError } from '../start-error.ts';
import {
  Environment,
  placeOfSecret,
  readPreviousSecret,
  readSecret,
  secretVariables,
} from './secret.ts';
import { Settings } from './settings.ts';

/** The part of the service that this process runs; `all` runs everything. */
export type Role = { name: 'all' } | { name: 'api' } | { name: 'connector'; id: number };

/** The configuration: environment, config/ and command line. */
export type Config = Settings & {
  role: Role;
  httpListen: { host: string; port: number };
  /** null: turned off. */
  mqttListen: { host: string; port: number } | null;
  mqttsListen: { host: string; port: number; certFile: string; keyFile: string } | null;
  /** Where a connector process accepts MQTT over WebSocket; null: nowhere. Other processes accept it on HTTP's port. */
  webSocketListen: { host: string; port: number } | null;
  metricsListen: { host: string; port: number } | null;
  healthListen: { host: string; port: number } | null;
  /** How long a process that is asked to stop keeps serving after it has reported that it is not ready. */
  drainDelayMs: number;
  /** The time from being asked to stop to the exit, including `drainDelayMs`. */
  stopTimeoutMs: number;
  publicHost: string;
  /** The base URL of links in mails, without a slash at its end; null: made from publicHost and the port of HTTP. */
  publicUrl: string | null;
  /** null: no mail is sent. */
  smtpUrl: string | null;
  /** null: the embedded database in `dataDir`. */
  databaseUrl: string | null;
  /** null: sessions in the database, one process only. */
  redisUrl: string | null;
  /** null: the data directory's own. */
  secret: string | null;
  /** Where the secret comes from, for messages: a variable, or a file. */
  secretPlace: string;
  previousSecret: string | null;
  dataDir: string;
  logLevel: Environment['LOG_LEVEL'];
  brokerHookSecret: string | null;
  /** The secret that bridges show to that broker; null: the same. */
  bridgeSecret: string | null;
};

export const projectDir = fileURLToPath(new URL('../..', import.meta.url));

/** Reads all settings. Throws one StartError that lists all problems. */
export async function loadConfig(
  variables: Record<string, string | undefined>,
  role: Role = { name: 'all' },
): Promise<Config> {
  const problems: string[] = [];
  const env = readEnvironment(variables, problems);
  const settings = await readSettings(join(projectDir, 'config'), env.CONFIG_FILE, problems);
  if (role.name === 'connector' && settings?.connectors.every(({ id }) => id !== role.id)) {
    const there = settings.connectors.map(({ id, name }) => `${id} (${name})`).join(', ');
    const place = env.CONFIG_FILE ?? 'config/';
    problems.push(`--id ${role.id}: ${place} has no connector with that id; it has ${there}.`);
  }
  const secret = await readSecret(env, problems);
  const previousSecret = await readPreviousSecret(env, problems);
  const mqttsListen = await readTls(env, problems);
  problems.push(...checkStopTimeout(env));
  if (settings === null || problems.length > 0) throw new StartError(problems);
  const dataDir = env.DATA_DIR === undefined ? join(projectDir, 'data') : resolve(env.DATA_DIR);
  return {
    ...settings,
    role,
    httpListen: { host: env.HTTP_HOST, port: env.HTTP_PORT },
    mqttListen: env.MQTT_PORT === 'off' ? null : { host: env.MQTT_HOST, port: env.MQTT_PORT },
    mqttsListen,
    webSocketListen:
      env.MQTT_WS_PORT === undefined ? null : { host: env.MQTT_HOST, port: env.MQTT_WS_PORT },
    metricsListen:
      env.METRICS_PORT === undefined ? null : { host: env.METRICS_HOST, port: env.METRICS_PORT },
    healthListen:
      env.HEALTH_PORT === undefined ? null : { host: env.HEALTH_HOST, port: env.HEALTH_PORT },
    drainDelayMs: env.DRAIN_DELAY_MS,
    stopTimeoutMs: stopTimeoutOf(env),
    publicHost: env.PUBLIC_HOST ?? findLanAddress(),
    publicUrl: env.PUBLIC_URL?.replace(/\/+$/, '') ?? null,
    smtpUrl: env.SMTP_URL ?? null,
    databaseUrl: env.DATABASE_URL ?? null,
    redisUrl: env.REDIS_URL ?? null,
    secret,
    secretPlace: placeOfSecret(env, dataDir),
    previousSecret,
    dataDir,
    logLevel: env.LOG_LEVEL,
    brokerHookSecret: env.BROKER_HOOK_SECRET ?? null,
    bridgeSecret: env.BRIDGE_SECRET ?? null,
  };
}

/** Drops invalid variables and continues, so that everything else is checked too. */
function readEnvironment(
  variables: Record<string, string | undefined>,
  problems: string[],
): Environment {
  const present = Object.fromEntries(Object.entries(variables).filter(([, value]) => value));
  const parsed = Environment.safeParse(present);
  if (parsed.success) return parsed.data;
  for (const { path, message } of parsed.error.issues) {
    const name = String(path[0]);
    const got = secretVariables.includes(name) ? '' : `, got "${present[name] ?? ''}"`;
    problems.push(`${name}: ${describeIssue(message)}${got}.`);
    delete present[name];
  }
  return Environment.parse(present);
}

async function readTls(env: Environment, problems: string[]): Promise<Config['mqttsListen']> {
  const { MQTTS_PORT: port, TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } = env;
  if (port === undefined && certFile === undefined && keyFile === undefined) return null;
  if (port === undefined)
    problems.push('MQTTS_PORT: required with TLS_CERT_FILE and TLS_KEY_FILE.');
  if (certFile === undefined) problems.push('TLS_CERT_FILE: required for MQTT over TLS.');
  if (keyFile === undefined) problems.push('TLS_KEY_FILE: required for MQTT over TLS.');
  problems.push(...(await checkCertificate(certFile, keyFile)));
  if (port === undefined || certFile === undefined || keyFile === undefined) return null;
  return { host: env.MQTT_HOST, port, certFile, keyFile };
}

/**
 * Merges the user's settings into the defaults. Adds errors to `problems`; returns null if the settings are unusable.
 */
async function readSettings(
  configDir: string,
  configFile: string | undefined,
  problems: string[],
): Promise<Settings | null> {
  const { default: defaults } = (await import(
    pathToFileURL(join(configDir, 'default.ts')).href
  )) as { default: unknown };
  const file = configFile ? resolve(configFile) : await findLocalFile(configDir);
  if (file === null) return takeDailyQuota(Settings.parse(followRegistration(defaults, {})));
  const local = await readLaid(file);
  if ('problem' in local) {
    problems.push(`${file}: ${local.problem}.`);
    return null;
  }
  const parsed = Settings.safeParse(followRegistration(defaults, local.value));
  if (parsed.success) return takeDailyQuota(parsed.data);
  for (const { path, message } of parsed.error.issues)
    problems.push(`${file}: ${path.join('.') || 'the whole'}: ${describeIssue(message)}.`);
  return null;
}

/** If registration is closed, its own quota defaults apply beneath the user's quotas. */
function followRegistration(defaults: unknown, local: unknown): unknown {
  const laid = layOver(defaults, local);
  if (!isObject(laid) || !isObject(laid['accounts'])) return laid;
  if (laid['accounts']['openRegistration'] !== false) return laid;
  return layOver(layOver(defaults, { quotas: laid['quotasWhereClosed'] }), local);
}

/** Applies an older name of `quotas.messagesPerDay`. */
function takeDailyQuota(settings: Settings): Settings {
  const { dailyQuota } = settings.notifications;
  if (dailyQuota === undefined) return settings;
  return { ...settings, quotas: { ...settings.quotas, messagesPerDay: dailyQuota } };
}

async function findLocalFile(configDir: string): Promise<string | null> {
  for (const name of ['local.json', 'local.ts']) {
    const path = join(configDir, name);
    if (await stat(path).catch(() => null)) return path;
  }
  return null;
}

/** Merges objects member by member. Anything else, including a list, replaces the base. */
function layOver(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over === undefined ? base : over;
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) merged[key] = layOver(base[key], value);
  return merged;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An object of settings, or the problem with the file, without its name. */
type Laid = { value: object } | { problem: string };

const modules = ['.ts', '.mts', '.js', '.mjs'];

/** Reads a file of settings that are merged into the defaults: JSON, or a module with a default export. */
async function readLaid(file: string): Promise<Laid> {
  try {
    // Read for both kinds, so that a missing file gives the same error.
    const bytes = await readFile(file);
    if (file.endsWith('.json')) return readJson(decodeUtf8(bytes));
    if (!modules.includes(extname(file))) return { problem: 'expected a .json or a .ts file' };
    return await readModule(file);
  } catch (error) {
    return { problem: whyUnreadable(error as NodeJS.ErrnoException) };
  }
}

function readJson(text: string | null): Laid {
  if (text === null) return { problem: 'expected UTF-8, found invalid bytes' };
  const error = findJsonError(text);
  if (error === null) return toLaid(JSON.parse(text));
  return { problem: `is not JSON: ${tellJsonError(error)}` };
}

async function readModule(file: string): Promise<Laid> {
  try {
    const loaded = (await import(pathToFileURL(file).href)) as object;
    if (!('default' in loaded)) return { problem: 'expected a default export, found none' };
    return toLaid(loaded.default);
  } catch (error) {
    const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { problem: `cannot be loaded (${message.replaceAll(/\s+/g, ' ').trim()})` };
  }
}

function toLaid(value: unknown): Laid {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value };
  const found = Array.isArray(value) ? 'a list' : value === null ? 'null' : `a ${typeof value}`;
  return { problem: `expected an object of settings, found ${found}` };
}

const unreadable: Record<string, string> = {
  ENOENT: 'the file does not exist',
  ENOTDIR: 'the file does not exist',
  EISDIR: 'expected a file, found a directory',
  EACCES: 'this user may not read it',
};

function whyUnreadable({ code = '', message }: NodeJS.ErrnoException): string {
  const why = Object.hasOwn(unreadable, code) ? unreadable[code] : undefined;
  return why ?? `cannot be read (${message})`;
}

type StopSettings = Pick<Environment, 'DRAIN_DELAY_MS' | 'STOP_TIMEOUT_MS'>;

/** Docker kills a container 10 s after asking it to stop; this leaves a second for overhead. */
const usualMs = 9_000;
/** The default time for finishing, storing and releasing, in addition to the delay. */
const usualDrainMs = 5_000;
/** Less would cut off what a stop has to do even if nothing hangs. */
const leastDrainMs = 2_000;

/** The time from being asked to stop to the exit, in ms. */
function stopTimeoutOf({ DRAIN_DELAY_MS, STOP_TIMEOUT_MS }: StopSettings): number {
  return STOP_TIMEOUT_MS ?? Math.max(usualMs, DRAIN_DELAY_MS + usualDrainMs);
}

/** Lines about a stop timeout that is too short. */
function checkStopTimeout(settings: StopSettings): string[] {
  const leastMs = settings.DRAIN_DELAY_MS + leastDrainMs;
  if (stopTimeoutOf(settings) >= leastMs) return [];
  return [
    `STOP_TIMEOUT_MS: expected ${leastMs} or more (DRAIN_DELAY_MS plus ${leastDrainMs} for ` +
      `stopping), got "${settings.STOP_TIMEOUT_MS}".`,
  ];
}

type Name = 'TLS_CERT_FILE' | 'TLS_KEY_FILE';

/**
 * Problems with the files of a certificate and its key, one line each. The files are parsed as they will be used.
 * Missing variables are reported elsewhere.
 */
async function checkCertificate(
  certFile: string | undefined,
  keyFile: string | undefined,
): Promise<string[]> {
  const problems: string[] = [];
  const read = async <T>(name: Name, path: string | undefined, parse: (text: string) => T) => {
    try {
      return path === undefined ? null : parse(await readFile(path, 'utf8'));
    } catch (error) {
      problems.push(`${name}: ${path} ${whyNot(error as NodeJS.ErrnoException, name)}.`);
      return null;
    }
  };
  const certificate = await read('TLS_CERT_FILE', certFile, (text) => new X509Certificate(text));
  const key = await read('TLS_KEY_FILE', keyFile, (text) => createPrivateKey(text));
  if (certificate && key && !certificate.checkPrivateKey(key))
    problems.push(`TLS_KEY_FILE: ${keyFile} is not the key of the certificate in ${certFile}.`);
  return problems;
}

function whyNot({ code = '', syscall, message }: NodeJS.ErrnoException, name: Name): string {
  if (syscall !== undefined) return `cannot be read (${message})`;
  if (code === 'ERR_MISSING_PASSPHRASE') return 'is encrypted: expected a key without a passphrase';
  const what = name === 'TLS_KEY_FILE' ? 'a private key' : 'a certificate';
  return `is not ${what} in PEM format (${message})`;
}

/** The text of `--help`: usage, and every environment variable from the schema. */
export function helpText(): string {
  const variables = Object.entries(Environment.shape).map(([name, schema]) => {
    const parsed = schema.safeParse(undefined);
    const byDefault =
      parsed.success && parsed.data !== undefined ? ` [${String(parsed.data)}]` : '';
    return `  ${name.padEnd(20)}${schema.description ?? ''}${byDefault}`;
  });
  return [
    'Usage: npm start [-- PART]',
    '',
    'Without PART everything runs in this process. The parts of a larger installation share one',
    'DATABASE_URL, REDIS_URL and SECRET:',
    '  api                 HTTP only',
    '  connector --id N    only the connector with that id in config/ (MQTT, HTTP or a bridge)',
    '  --help, --version',
    '',
    'Environment:',
    ...variables,
    '',
    'config/default.ts lists every other setting with its default. Write your changes into',
    'config/local.json.',
  ].join('\n');
}
