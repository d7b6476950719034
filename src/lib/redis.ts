import { Redis } from 'ioredis';
import { DomainError } from '../errors.ts';

type RedisClientOptions = {
  url: string;
  /** A command without an answer for so long has failed; callers fail closed well below 2 s. */
  commandTimeoutMs?: number;
  /** Whether it subscribes again by itself once it has reconnected; it does unless said otherwise. */
  autoResubscribe?: boolean;
  /** The first error of a connection that is away; the client reconnects by itself, several times a second. */
  onError: (error: Error) => void;
  /** It is there again after that. */
  onBack?: (() => void) | undefined;
};

/**
 * Opens a connection that comes back by itself. While it is away commands fail at once instead of
 * waiting in a queue, and a command cut off by a lost connection is never sent twice: what it did
 * is unknown, and a refresh token used twice would end its family.
 */
export function openRedis(options: RedisClientOptions): Redis {
  const { url, commandTimeoutMs = 1_000, autoResubscribe = true, onError, onBack } = options;
  const redis = new Redis(url, {
    autoResubscribe,
    // A server that hangs is given up with the first command it leaves unanswered, not with each.
    socketTimeout: commandTimeoutMs,
    commandTimeout: commandTimeoutMs + 200,
    connectTimeout: 1_500,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(50 * attempt, 500),
  });
  let isAway = false;
  redis.on('error', (error) => {
    if (!isAway) onError(error);
    isAway = true;
  });
  redis.on('ready', () => {
    if (isAway) onBack?.();
    isAway = false;
  });
  return redis;
}

/** Opens a connection and waits until it is there, or has failed once: Redis may come later. */
export async function connectRedis(options: RedisClientOptions): Promise<Redis> {
  const redis = openRedis(options);
  await firstOf(redis, ['ready', 'close']);
  return redis;
}

/** Resolves with the first of these events. */
export function firstOf(redis: Redis, events: ('ready' | 'close')[]): Promise<void> {
  return new Promise((resolve) => {
    for (const event of events) redis.once(event, () => resolve());
  });
}

/** Ends a connection: with QUIT where the server still answers. */
export async function closeRedis(redis: Redis): Promise<void> {
  if (redis.status !== 'ready') return redis.disconnect();
  await redis.quit().catch(() => redis.disconnect());
}

/**
 * Whether Redis answers that it cannot be written to: it is a replica (`READONLY`), or has no room on its disk or in its
 * memory. Null where that is not what it says.
 */
export function whyUnwritable(error: unknown): 'read-only' | 'refused' | null {
  const said = /^(READONLY|MISCONF|OOM|NOPERM|NOREPLICAS)\b/.exec(
    error instanceof Error ? error.message : '',
  )?.[1];
  if (said === undefined) return null;
  return said === 'READONLY' ? 'read-only' : 'refused';
}

const unwritableTexts = {
  'read-only': 'The session store is read-only.',
  refused: 'The session store refuses writes.',
};

/** Runs commands; whatever goes wrong between here and Redis is `unavailable`. */
export async function reachRedis<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const why = whyUnwritable(cause);
    const message = why === null ? 'The session store is unreachable.' : unwritableTexts[why];
    throw new DomainError('unavailable', message, {
      cause,
      retryAfterSeconds: 1,
    });
  }
}
