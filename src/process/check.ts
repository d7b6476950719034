import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { Config } from '../config/config.ts';
import { firstOf, openRedis } from '../lib/redis.ts';
import {
  ask,
  isCertificateError,
  isPostgres,
  isTlsError,
  nameOfPlace,
  recognise,
  type ServerAnswer,
  type ServerPlace,
  sslRequest,
  whyUnreachable,
} from '../lib/servers.ts';
import { toError } from '../lib/thrown.ts';
import { StartError } from '../start-error.ts';

type RedisCheckOptions = {
  url: string;
  /** Redis is unreachable or not ready yet: the service starts without it. */
  onAway: (why: string) => void;
};

/** Per query. */
const timeoutMs = 1_000;

/**
 * These keys do not exist, so deleting them changes nothing. Two, because a Redis Cluster refuses commands on keys in
 * several slots.
 */
const checkedKeys = ['sensorium:check:1', 'sensorium:check:2'];

/**
 * Checks whether REDIS_URL leads to a usable Redis. Throws a StartError of one line if something unusable answers. A
 * Redis that is away, hangs or is still loading is not an error, because it may answer later.
 */
export async function checkRedis({ url, onAway }: RedisCheckOptions): Promise<void> {
  const { protocol, hostname, port } = new URL(url);
  const tls = protocol === 'rediss:';
  const place = {
    host: hostname.replace(/^\[|\]$/g, '') || 'localhost',
    port: Number(port || 6379),
  };
  const answer = await ask(place, 'PING\r\n', { timeoutMs, tls });
  const stranger = await findStranger(answer, place, tls);
  if (stranger !== null) throw new StartError(`REDIS_URL: ${stranger}.`);
  const why = whyAway(answer, place);
  if (why !== null) return onAway(why);
  const error = await tryToWrite(url);
  if (error === null) return undefined;
  const refusal = findRefusal(error, nameOfPlace(place));
  if (refusal === null) return onAway(`${nameOfPlace(place)}: ${error.message}`);
  throw new StartError(`REDIS_URL: ${refusal}.`, { cause: error });
}

/** What answers there, if it is not Redis or needs another protocol; null if that is unknown. */
async function findStranger(
  answer: ServerAnswer,
  place: ServerPlace,
  tls: boolean,
): Promise<string | null> {
  const name = nameOfPlace(place);
  if (answer.kind === 'said') {
    const what = recognise(answer.bytes);
    if (what === 'a Redis server') return null;
    const hint = what.includes('TLS') ? 'use rediss://' : 'correct host and port';
    return `expected Redis, but at ${name} is ${what}: ${hint}`;
  }
  const noTls = answer.kind === 'failed' ? whyNoTls(answer.error, name) : null;
  if (noTls !== null) return noTls;
  if (answer.kind === 'failed') return null;
  // A Redis without TLS waits for the end of what it takes for a command.
  if (tls && isRedis(await ask(place, 'PING\r\n', { timeoutMs })))
    return `${name} is a Redis server without TLS: use redis://`;
  if (answer.kind !== 'closed') return null;
  if (!tls && (await speaksTls(place))) return `${name} expects TLS: use rediss://`;
  // PostgreSQL closes the connection without an answer if it does not know the protocol.
  if (isPostgres(await ask(place, sslRequest, { timeoutMs })))
    return `expected Redis, but at ${name} is a PostgreSQL server: correct host and port`;
  return null;
}

async function speaksTls(place: ServerPlace): Promise<boolean> {
  const answer = await ask(place, 'PING\r\n', { timeoutMs, tls: true });
  return isRedis(answer) || (answer.kind === 'failed' && isCertificateError(answer.error));
}

function isRedis(answer: ServerAnswer): boolean {
  return answer.kind === 'said' && recognise(answer.bytes) === 'a Redis server';
}

function whyAway(answer: ServerAnswer, place: ServerPlace): string | null {
  switch (answer.kind) {
    case 'failed':
      return whyUnreachable(answer.error, place);
    case 'closed':
      return `${nameOfPlace(place)} closes the connection without an answer`;
    case 'silent':
      return `${nameOfPlace(place)} accepts the connection but does not answer`;
    case 'said':
      return answer.bytes.toString('latin1').startsWith('-LOADING')
        ? `${nameOfPlace(place)} is still loading its data`
        : null;
  }
}

/** Logs in and runs a command as the service does. Returns the error, if any. */
async function tryToWrite(url: string): Promise<Error | null> {
  const errors: Error[] = [];
  const redis = openRedis({ url, onError: (error) => errors.push(error) });
  try {
    await firstOf(redis, ['ready', 'close']);
    if (errors.length === 0) await redis.del(checkedKeys);
  } catch (error) {
    errors.push(toError(error));
  } finally {
    redis.disconnect();
  }
  return errors[0] ?? null;
}

/** Redis's answers to a client that it will not serve until something is changed. */
const refusals: [RegExp, (name: string, said: string) => string][] = [
  [
    /^NOAUTH/,
    (name) =>
      `${name} requires a password: write redis://:password@host:port (with a user: user:password@)`,
  ],
  [
    /^WRONGPASS|invalid password|^ERR AUTH/,
    (name) => `${name} does not accept this user or password: correct them`,
  ],
  [
    /^NOPERM/,
    (name, said) =>
      `${name} does not allow this user to do what is needed (${said}): its ACL must allow the ` +
      'keys and channels sensorium:*',
  ],
  [/^READONLY/, (name) => `${name} is a read-only replica: name the primary`],
  [
    /^DENIED/,
    (name) => `${name} is in protected mode and answers only its own machine: give it a password`,
  ],
  [
    /^(MOVED|CROSSSLOT|CLUSTERDOWN)|SELECT is not allowed/,
    (name) => `${name} belongs to a Redis Cluster: expected a single Redis or Valkey`,
  ],
  [
    /DB index|invalid DB/i,
    (name) => `${name} has no database with the number at the end of the URL: correct it`,
  ],
  [
    /unknown command/i,
    (name, said) =>
      `${name} is not a Redis that stores data, perhaps a Sentinel (${said}): name the Redis itself`,
  ],
];

/** What to fix if Redis refuses for good; null if it may serve later. */
function findRefusal(error: Error, name: string): string | null {
  const said = error.message.replaceAll(/\s+/g, ' ');
  const found = refusals.find(([pattern]) => pattern.test(error.message));
  return found?.[1](name, said) ?? whyNoTls(error, name);
}

/** The same for a failed handshake; null if it was something else. */
function whyNoTls(error: Error, name: string): string | null {
  if (!isTlsError(error)) return null;
  if (!isCertificateError(error))
    return `${name} does not answer with TLS: use redis://, or name its TLS port`;
  return (
    `the certificate of ${name} is not accepted (${error.message}): set NODE_EXTRA_CA_CERTS to ` +
    'its authority, or use the host name in the certificate'
  );
}

type Address = { host: string; port: number };
/** The variables that set a listen address, and the address. */
type Listener = { portName: string; hostName: string; at: Address };

/**
 * Tries every address before anything else is started. Throws a StartError with a line for each that is unavailable.
 * Another program may still take one meanwhile; listening then fails with the same text.
 */
export async function checkPorts(config: Config): Promise<void> {
  const problems: string[] = [];
  const held: { listener: Listener; server: Server }[] = [];
  for (const listener of listListeners(config)) {
    const other = held.find(({ listener: { at } }) => isSame(at, listener.at))?.listener;
    const problem = other
      ? `${listener.portName}: port ${listener.at.port} is also that of ${other.portName}: ` +
        'choose another one'
      : await tryToListen(listener, (server) => held.push({ listener, server }));
    if (problem !== null) problems.push(`${problem}.`);
  }
  await Promise.all(held.map(({ server }) => once(server.close(), 'close')));
  if (problems.length > 0) throw new StartError(problems);
}

/** All addresses on which this process listens. */
function listListeners(config: Config): Listener[] {
  const { role, connectors, httpListen, mqttListen, mqttsListen, webSocketListen } = config;
  const { metricsListen, healthListen } = config;
  const own = role.name === 'connector' ? connectors.find(({ id }) => id === role.id) : null;
  const isHttpOnly = own?.kind === 'http';
  const http = role.name === 'connector' && !isHttpOnly ? null : httpListen;
  const [mqtt, mqtts] =
    role.name === 'api' || isHttpOnly ? [null, null] : [mqttListen, mqttsListen];
  const all: [string, string, Address | null][] = [
    ['HTTP_PORT', 'HTTP_HOST', http],
    ['MQTT_PORT', 'MQTT_HOST', mqtt],
    ['MQTTS_PORT', 'MQTT_HOST', mqtts],
    ['MQTT_WS_PORT', 'MQTT_HOST', own?.kind === 'mqtt' ? webSocketListen : null],
    ['METRICS_PORT', 'METRICS_HOST', metricsListen],
    ['HEALTH_PORT', 'HEALTH_HOST', healthListen],
  ];
  return all.flatMap(([portName, hostName, at]) => (at ? [{ portName, hostName, at }] : []));
}

function isSame(a: Address, b: Address): boolean {
  return a.port !== 0 && a.port === b.port && a.host === b.host;
}

async function tryToListen(
  { portName, hostName, at }: Listener,
  onListening: (server: Server) => void,
): Promise<string | null> {
  const server = createServer();
  try {
    await once(server.listen({ host: at.host, port: at.port }), 'listening');
    onListening(server);
    return null;
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    const where = `port ${at.port} of ${at.host}`;
    if (code === 'EADDRINUSE')
      return (
        `${portName}: ${where} is in use: stop what uses it, or choose another one (0 takes any ` +
        'free one)'
      );
    if (code === 'EACCES')
      return `${portName}: this user may not listen on ${where}: choose a port from 1024 on, or allow it`;
    if (['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL'].includes(code))
      return `${hostName}: this machine has no address ${at.host}: name one that it has, or 0.0.0.0 for all`;
    return `${portName}: ${where} is not available (${message})`;
  }
}
