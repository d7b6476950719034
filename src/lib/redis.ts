import { Redis } from 'ioredis';
import { DomainError } from '../errors.ts';

type RedisClientOptions = {
  url: string;
  /** A command without an answer for this long has failed. Callers fail closed well below 2 s. */
  commandTimeoutMs?: number;
  /** Whether it subscribes again after a reconnect; default true. */
  autoResubscribe?: boolean;
  /** The first error of a connection that is away. The client reconnects by itself, several times a second. */
  onError: (error: Error) => void;
  /** The connection is back after that. */
  onBack?: (() => void) | undefined;
};

/**
 * Opens a connection that reconnects by itself. While it is away, commands fail at once instead of queueing. A command
 * cut off by a lost connection is never sent twice: its effect is unknown, and a refresh token used twice would end its
 * family.
 */
export function openRedis(options: RedisClientOptions): Redis {
  const { url, commandTimeoutMs = 1_000, autoResubscribe = true, onError, onBack } = options;
  const redis = new Redis(url, {
    autoResubscribe,
    // One unanswered command is enough to give up a server that hangs.
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

/** Opens a connection and waits until it is ready or has failed once: Redis may start later. */
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

/** Ends a connection, with QUIT if the server still answers. */
export async function closeRedis(redis: Redis): Promise<void> {
  if (redis.status !== 'ready') return redis.disconnect();
  await redis.quit().catch(() => redis.disconnect());
}

/** Why Redis refuses writes: it is a replica (`READONLY`), or its disk or memory is full. Null for any other error. */
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

/** Runs commands. Any failure becomes `unavailable`. */
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
