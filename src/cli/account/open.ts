import type { Bus } from '../../bus/bus.ts';
import { createLocalBus } from '../../bus/local.ts';
import { startRedisBus } from '../../bus/redis.ts';
import { checkRedis } from '../../process/check.ts';
import { monotonicClock } from '../../lib/clock.ts';
import type { Config } from '../../config/config.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import type { QuotaSettings } from '../../quotas/settings.ts';
import type { Settings } from '../../config/settings.ts';
import { startDatabaseSessions } from '../../sessions/database.ts';
import { startRedisSessions } from '../../sessions/redis.ts';
import type { SessionStore } from '../../sessions/store.ts';
import { reachDatabase, requireDatabase } from './reach-database.ts';

/** What the functions of the features need when a command calls them. */
export type Tools = {
  config: Config;
  db: Database;
  store: SessionStore;
  bus: Bus;
  quotas: QuotaSettings;
  retention: Settings['retention'];
  close(): Promise<void>;
};

/** `mayMake`: the embedded database is made where `DATA_DIR` has none yet; without it that is refused. */
export async function openTools(config: Config, { mayMake = false } = {}): Promise<Tools> {
  const { redisUrl: url } = config;
  if (url !== null) await checkRedis({ url, onAway: () => {} });
  if (!mayMake) await requireDatabase(config);
  const reached = await reachDatabase(config);
  const { connectTimeoutMs, statementTimeoutMs } = config.database;
  const db = openDatabase({
    connectionString: reached.connectionString,
    schema: reached.schema,
    maxConnections: 4,
    applicationName: 'operator-command',
    connectTimeoutMs,
    statementTimeoutMs,
    onIdleError: onError,
  });
  const store = url
    ? await startRedisSessions({ url, onError })
    : startDatabaseSessions(db, { believedTs: () => null, onError });
  const bus = url
    ? await startRedisBus({ url, monotonicClock, onError, onListenerError: onError })
    : createLocalBus({ onListenerError: onError });
  return {
    config,
    db,
    store,
    bus,
    quotas: config.quotas,
    retention: config.retention,
    async close() {
      await bus.close();
      await store.close();
      await db.close();
      await reached.release();
    },
  };
}

/** What fails because of it says so itself. */
function onError(): void {}
