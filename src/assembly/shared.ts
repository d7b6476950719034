import { startDisabledAccounts, type DisabledAccounts } from '../accounts/disabled.ts';
import type { Bus } from '../bus/bus.ts';
import { createLocalBus } from '../bus/local.ts';
import { startRedisBus } from '../bus/redis.ts';
import { checkRedis } from '../process/check-redis.ts';
import type { Config } from '../config/config.ts';
import type { Database } from '../db/database.ts';
import { createMetrics } from '../metrics/metrics.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { startLimits, type Limits, type LimitsOf } from '../quotas/limits.ts';
import { deriveKeys } from '../config/keys.ts';
import type { Keys } from '../config/keys.ts';
import type { Logger } from '../log.ts';
import { settleSecret } from '../secret-check/settle.ts';
import { databaseAnswers } from './health.ts';
import { startMemory, type Memory } from './memory.ts';
import { createPublicUrl, type PublicUrl } from './public-url.ts';
import type { Readiness } from './readiness.ts';
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
  /** What a part needs before work may be sent here is added to it. */
  readiness: Readiness;
  limitsOf: LimitsOf;
  loginsOf: Limits['loginsOf'];
  /** Accounts that the operator has shut out. */
  disabled: DisabledAccounts;
  memory: Memory;
  publicUrl: PublicUrl;
};

export type SharedOptions = Pick<Shared, 'releases' | 'edges' | 'readiness'> & {
  /** Told once when a later version has taken the tables away from this one. */
  onMoved: (lines: string[]) => void;
};

export async function startShared(
  config: Config,
  log: Logger,
  { releases, edges, readiness, onMoved }: SharedOptions,
): Promise<Shared> {
  await checkRedisOf(config, log);
  const storage = await openStorage(config, log, releases);
  const db = storage.openPatient(config.database.maxConnections);
  storage.watchTables(db, onMoved);
  readiness.add('database', () => databaseAnswers(db));
  // Before anything derives a key: what a wrong secret signs nobody could tell from the right one's.
  const secret = await settleSecret(db, config, log);
  const bus = await startBus(config, log);
  releases.add(() => bus.close());
  const keys = deriveKeys(secret, config.previousSecret ?? undefined);
  const metrics = createMetrics();
  const { limitsOf, loginsOf } = await startQuotas(db, config, log, releases);
  const disabled = await startDisabled(db, log, releases);
  const clock = Date.now;
  const { memory: settings } = config;
  const { registry } = metrics;
  const memory = startMemory({ settings, log, registry, readiness, releases });
  const parts = { config, log, releases, storage, db, bus, keys, metrics, edges, readiness };
  const publicUrl = createPublicUrl(config);
  return { ...parts, clock, limitsOf, loginsOf, disabled, memory, publicUrl };
}

/** Before the database, which may have to be made first. */
async function checkRedisOf({ redisUrl: url }: Config, log: Logger): Promise<void> {
  const onAway = (why: string) => log.warn({ why }, 'Redis is away: starting without it');
  if (url !== null) await checkRedis({ url, onAway });
}

async function startQuotas(
  db: Database,
  { quotas }: Config,
  log: Logger,
  releases: Releases,
): Promise<Limits> {
  const onError = (err: unknown) => log.warn({ err }, "accounts' own quotas could not be read");
  const limits = await startLimits({ db, quotas, onError });
  releases.add(() => limits.close());
  return limits;
}

async function startDisabled(
  db: Database,
  log: Logger,
  releases: Releases,
): Promise<DisabledAccounts> {
  const onError = (err: unknown) =>
    log.warn({ err }, 'which accounts are disabled could not be read');
  const disabled = await startDisabledAccounts({ db, onError });
  releases.add(() => disabled.close());
  return disabled;
}

async function startBus({ redisUrl }: Config, log: Logger): Promise<Bus> {
  const onListenerError = (err: unknown, channel: string) =>
    log.error({ err, channel }, 'a listener on the bus failed');
  if (redisUrl === null) return createLocalBus({ onListenerError });
  const onError = (err: unknown) => log.warn({ err }, 'the bus is degraded');
  return startRedisBus({ url: redisUrl, onListenerError, onError });
}
