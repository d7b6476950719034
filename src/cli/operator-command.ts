import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Bus, createLocalBus } from '../bus/bus.ts';
import { startRedisBus } from '../bus/redis.ts';
import { type Config, loadConfig } from '../config/config.ts';
import type { Settings } from '../config/settings.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { connectionStringOf, findCluster, findPostmaster } from '../db/embedded/cluster.ts';
import { startEmbeddedDatabase } from '../db/embedded/embedded.ts';
import { canLogIn, databaseName, findService, isEarlier } from '../db/embedded/enter.ts';
import { explainFailure } from '../db/errors.ts';
import { migrate } from '../db/migrate.ts';
import { monotonicClock } from '../lib/clock.ts';
import type { LogEvent } from '../log/events.ts';
import type { Write } from '../log/logger.ts';
import { checkRedis } from '../process/check.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { startDatabaseSessions } from '../sessions/database.ts';
import { startRedisSessions } from '../sessions/redis.ts';
import type { SessionStore } from '../sessions/store.ts';
import { describeStartError, StartError } from '../start-error.ts';
import { asksForHelp, consoleLog, findWrongArgument } from './command-line.ts';

type OperatorCommands = {
  usage: string;
  /** Commands by name, without arguments. Each returns the lines to print. */
  commands: { status: (tools: Tools) => Promise<string[]> } & Record<
    string,
    (tools: Tools) => Promise<string[]>
  >;
};

/**
 * Runs an operator's command about the service as a whole; `status` without an argument. Returns the exit status: 1 if
 * it failed, 2 if the arguments are wrong.
 */
export async function runOperatorCommand(
  args: string[],
  { usage, commands }: OperatorCommands,
): Promise<number> {
  if (asksForHelp(args)) {
    process.stdout.write(usage);
    return 0;
  }
  const given = args.length === 0 ? ['status'] : args;
  const takes = Object.keys(commands).map((name) => [name, [0, 0] as [number, number]] as const);
  const wrong = findWrongArgument(given, Object.fromEntries(takes));
  const command = commands[given[0] ?? ''];
  if (wrong !== null || !command) {
    process.stderr.write(`${wrong}\n\n${usage}`);
    return 2;
  }
  try {
    const tools = await openTools(await loadConfig(process.env));
    try {
      for (const line of await command(tools)) console.log(line);
      return 0;
    } finally {
      await tools.close();
    }
  } catch (error) {
    const lines = describeStartError(error);
    if (lines) for (const line of lines) console.error(line);
    else console.error(error);
    return 1;
  }
}

/** What the features' functions need when a command calls them. */
export type Tools = {
  config: Config;
  db: Database;
  store: SessionStore;
  bus: Bus;
  quotas: QuotaSettings;
  retention: Settings['retention'];
  close(): Promise<void>;
};

/** `mayMake`: create the embedded database if `DATA_DIR` has none yet. Otherwise that is refused. */
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

/** Ignored, because the command that fails reports the error itself. */
function onError(): void {}

/** Events that a command prints too: creating or migrating a database cannot be undone. */
const told: LogEvent[] = ['database.created', 'database.migrated'];
const info: Write = (context, message) => {
  if (told.includes(context.event)) consoleLog.warn(context, message);
};
const log = { ...consoleLog, info };

type Found = { connectionString: string; release(): Promise<void> };

/** A database that has this program's schema, and the name of that schema. */
type ReachedDatabase = Found & { schema: string };

/**
 * Migrates the configured database. Without one it uses the embedded database, beside the service that runs on it, or
 * started for as long as the command takes.
 */
async function reachDatabase(config: Config): Promise<ReachedDatabase> {
  const reached = await reachUnchanged(config);
  try {
    const { schema } = await migrate(reached.connectionString, { log });
    return { ...reached, schema };
  } catch (error) {
    await reached.release();
    throw explainFailure(error);
  }
}

/**
 * Throws for a data directory without a database. Starting the embedded one would create it, and a mistyped `DATA_DIR`
 * would look like a service without data.
 */
export async function requireDatabase({ databaseUrl, dataDir }: Config): Promise<void> {
  if (databaseUrl !== null) return;
  if (!(await stat(join(dataDir, 'postgresql')).catch(() => null)))
    throw new StartError(`DATA_DIR ${dataDir}: holds no database.`);
}

/** The same without migrating it. */
export async function reachUnchanged({ databaseUrl, dataDir }: Config): Promise<Found> {
  if (databaseUrl !== null) return { connectionString: databaseUrl, release: async () => {} };
  const running = await findRunning(dataDir);
  if (running !== null) return { connectionString: running, release: async () => {} };
  const { connectionString, stop } = await startEmbeddedDatabase({ dataDir, log });
  return { connectionString, release: stop };
}

/**
 * Null for a server of an earlier version, whose database the superuser owns: `startEmbeddedDatabase` hands it over.
 */
async function findRunning(dataDir: string): Promise<string | null> {
  const { clusterDir } = await findCluster(dataDir);
  const postmaster = clusterDir === null ? null : await findPostmaster(clusterDir);
  const service = await findService(dataDir);
  if (postmaster === null || service === null || isEarlier(postmaster.address)) return null;
  const url = connectionStringOf(postmaster.address, service, databaseName);
  return (await canLogIn(url)) ? url : null;
}
