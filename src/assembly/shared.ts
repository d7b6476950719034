import type { Bus } from '../bus/bus.ts';
import { createLocalBus } from '../bus/local.ts';
import { startRedisBus } from '../bus/redis.ts';
import { checkRedis } from '../check-redis.ts';
import type { Config } from '../config.ts';
import type { Database } from '../db/database.ts';
import { createMetrics } from '../http/metrics.ts';
import type { Metrics } from '../http/metrics.ts';
import { deriveKeys } from '../keys.ts';
import type { Keys } from '../keys.ts';
import type { Logger } from '../log.ts';
import { readOrMakeSecret } from '../secret.ts';
import type { Edges, Releases } from './releases.ts';
import { openStorage } from './storage.ts';
import type { OpenStorage } from './storage.ts';

/** What both halves of the service stand on. */
export type Shared = {
  config: Config;
  log: Logger;
  releases: Releases;
  storage: OpenStorage;
  db: Database;
  bus: Bus;
  keys: Keys;
  metrics: Metrics;
  clock: () => number;
  edges: Edges;
};

export async function startShared(
  config: Config,
  log: Logger,
  { releases, edges }: { releases: Releases; edges: Edges },
): Promise<Shared> {
  await checkRedisOf(config, log);
  const storage = await openStorage(config, log, releases);
  const db = storage.openPatient(config.database.maxConnections);
  const bus = await startBus(config, log);
  releases.add(() => bus.close());
  const secret = config.secret ?? (await readOrMakeSecret(config.dataDir));
  const keys = deriveKeys(secret, config.previousSecret ?? undefined);
  const metrics = createMetrics();
  return { config, log, releases, storage, db, bus, keys, metrics, edges, clock: Date.now };
}

/** Before the database, which may have to be made first. */
async function checkRedisOf({ redisUrl: url }: Config, log: Logger): Promise<void> {
  const onAway = (why: string) => log.warn({ why }, 'Redis is away: starting without it');
  if (url !== null) await checkRedis({ url, onAway });
}

async function startBus({ redisUrl }: Config, log: Logger): Promise<Bus> {
  const onListenerError = (err: unknown, channel: string) =>
    log.error({ err, channel }, 'a listener on the bus failed');
  if (redisUrl === null) return createLocalBus({ onListenerError });
  const onError = (err: unknown) => log.warn({ err }, 'the bus is degraded');
  return startRedisBus({ url: redisUrl, onListenerError, onError });
}
