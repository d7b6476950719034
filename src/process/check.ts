import { firstOf, openRedis } from '../lib/redis.ts';
import {
  ask,
  isCertificateError,
  isPostgres,
  nameOfPlace,
  recognise,
  type ServerAnswer,
  type ServerPlace,
  sslRequest,
  whyUnreachable,
} from '../lib/servers.ts';
import { toError } from '../lib/thrown.ts';
import { StartError } from '../start-error.ts';
import { findRefusal, whyNoTls } from './explain-redis-refusal.ts';

export type RedisCheckOptions = {
  url: string;
  /** Redis is not there, or not yet: the service starts without it. */
  onAway: (why: string) => void;
};

/** For each question. */
const timeoutMs = 1_000;

/** Absent, so nothing changes. Two, as a Redis Cluster refuses commands on keys of several slots. */
const checkedKeys = ['sensorium:check:1', 'sensorium:check:2'];

/**
 * Whether REDIS_URL leads to a Redis that can be worked with: throws a StartError of one line where
 * something answers and cannot. One that is away, hangs or still loads is not an error: it may answer later.
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

/** What is there that is no Redis, or none that is spoken to in this way; null where that is unknown. */
async function findStranger(
  answer: ServerAnswer,
  place: ServerPlace,
  tls: boolean,
): Promise<string | null> {
  const name = nameOfPlace(place);
  if (answer.kind === 'said') {
    const what = recognise(answer.bytes);
    if (what === 'a Redis server') return null;
    const advice = what.includes('TLS') ? 'write rediss://' : 'correct host and port';
    return `expected Redis, but at ${name} is ${what}: ${advice}`;
  }
  const noTls = answer.kind === 'failed' ? whyNoTls(answer.error, name) : null;
  if (noTls !== null) return noTls;
  if (answer.kind === 'failed') return null;
  // A Redis without TLS waits for the end of what it takes for a command.
  if (tls && isRedis(await ask(place, 'PING\r\n', { timeoutMs })))
    return `${name} is a Redis without TLS: write redis://`;
  if (answer.kind !== 'closed') return null;
  if (!tls && (await speaksTls(place))) return `${name} expects TLS: write rediss://`;
  // PostgreSQL closes the connection without an answer where it does not know the protocol.
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
      return `${nameOfPlace(place)} closes the connection without a word`;
    case 'silent':
      return `${nameOfPlace(place)} accepts the connection and says nothing`;
    case 'said':
      return answer.bytes.toString('latin1').startsWith('-LOADING')
        ? `${nameOfPlace(place)} is still loading its data`
        : null;
  }
}

/** Logs in and runs a command as the service does; gives what went wrong. */
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
