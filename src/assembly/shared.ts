import type { Bus } from '../bus/bus.ts';
import { createLocalBus } from '../bus/local.ts';
import { startRedisBus } from '../bus/redis.ts';
import type { Config } from '../config.ts';
import type { Database } from '../db/database.ts';
import { createMetrics } from '../http/metrics.ts';
import type { Metrics } from '../http/metrics.ts';
import { startLimits, type LimitsOf } from '../quotas/limits.ts';
import { deriveKeys } from '../keys.ts';
import type { Keys } from '../keys.ts';
import type { Logger } from '../log.ts';
import { settleSecret } from '../secret-check/settle.ts';
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
  limitsOf: LimitsOf;
};

export type SharedOptions = {
  releases: Releases;
  edges: Edges;
  /** Told once when a later version has taken the tables away from this one. */
  onMoved: (lines: string[]) => void;
};

export async function startShared(
  config: Config,
  log: Logger,
  { releases, edges, onMoved }: SharedOptions,
): Promise<Shared> {
  const storage = await openStorage(config, log, releases);
  const db = storage.openPatient(config.database.maxConnections);
  storage.watchTables(db, onMoved);
  // Before anything derives a key: what a wrong secret signs nobody could tell from the right one's.
  const secret = await settleSecret(db, config, log);
  const bus = await startBus(config, log);
  releases.add(() => bus.close());
  const keys = deriveKeys(secret, config.previousSecret ?? undefined);
  const metrics = createMetrics();
  const limitsOf = await startQuotas(db, config, log, releases);
  const clock = Date.now;
  return { config, log, releases, storage, db, bus, keys, metrics, edges, clock, limitsOf };
}

async function startQuotas(
  db: Database,
  { quotas }: Config,
  log: Logger,
  releases: Releases,
): Promise<LimitsOf> {
  const onError = (err: unknown) => log.warn({ err }, "accounts' own quotas could not be read");
  const limits = await startLimits({ db, quotas, onError });
  releases.add(() => limits.close());
  return limits.limitsOf;
}

async function startBus({ redisUrl }: Config, log: Logger): Promise<Bus> {
  const onListenerError = (err: unknown, channel: string) =>
    log.error({ err, channel }, 'a listener on the bus failed');
  if (redisUrl === null) return createLocalBus({ onListenerError });
  const onError = (err: unknown) => log.warn({ err }, 'the bus is degraded');
  return startRedisBus({ url: redisUrl, onListenerError, onError });
}
