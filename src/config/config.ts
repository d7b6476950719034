import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkCertificate } from './check-certificate.ts';
import { Environment, secretVariables } from './environment.ts';
import { findLanAddress } from '../lib/lan-address.ts';
import { readSettings } from './read-settings.ts';
import { placeOfSecret, readPreviousSecret, readSecret } from './secret.ts';
import { checkStopTimeout, stopTimeoutOf } from './stop-timeout.ts';
import type { Settings } from './settings.ts';
import { StartError } from '../start-error.ts';
import { describeIssue } from '../lib/issue-message.ts';

/** Which part of the service this process is; `all` is both. */
export type Role = { name: 'all' } | { name: 'api' } | { name: 'connector'; id: number };

/** All that the service is told from outside: environment, config/ and the command line. */
export type Config = Settings & {
  role: Role;
  httpListen: { host: string; port: number };
  /** null: turned off. */
  mqttListen: { host: string; port: number } | null;
  mqttsListen: { host: string; port: number; certFile: string; keyFile: string } | null;
  /** Where a connector process takes MQTT over a WebSocket; null: nowhere. Others have it where HTTP is. */
  webSocketListen: { host: string; port: number } | null;
  metricsListen: { host: string; port: number } | null;
  healthListen: { host: string; port: number } | null;
  /** How long a process that is asked to stop serves on after it has said that it is not ready. */
  drainDelayMs: number;
  /** From being asked to stop to the exit, `drainDelayMs` included. */
  stopTimeoutMs: number;
  publicHost: string;
  /** Where links in mails lead, without a slash at its end; null: by publicHost and the port of HTTP. */
  publicUrl: string | null;
  /** null: no mail is sent. */
  smtpUrl: string | null;
  /** null: the embedded database in `dataDir`. */
  databaseUrl: string | null;
  /** null: sessions in the database, one process only. */
  redisUrl: string | null;
  /** null: the data directory's own. */
  secret: string | null;
  /** Where the secret is looked for, in words: a variable, or a file. */
  secretPlace: string;
  previousSecret: string | null;
  dataDir: string;
  logLevel: Environment['LOG_LEVEL'];
  brokerHookSecret: string | null;
  /** What bridges show there; null: the same. */
  bridgeSecret: string | null;
};

export const projectDir = fileURLToPath(new URL('../..', import.meta.url));

/** Reads all settings and throws one StartError that lists everything wrong with them. */
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

/** Goes on without the variables that are wrong, so that everything else is looked at too. */
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
