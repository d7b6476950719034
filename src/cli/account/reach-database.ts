import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { connectionStringOf } from '../../db/embedded/address.ts';
import { isEarlier } from '../../db/embedded/earlier-server.ts';
import { startEmbeddedDatabase } from '../../db/embedded/embedded.ts';
import { canLogIn } from '../../db/embedded/enter.ts';
import { findCluster } from '../../db/embedded/location.ts';
import { databaseName } from '../../db/embedded/make.ts';
import { findPostmaster } from '../../db/embedded/postmaster.ts';
import { findService } from '../../db/embedded/secrets.ts';
import { migrate } from '../../db/migrate.ts';
import { explainFailure } from '../../db/why-refused.ts';
import type { LogEvent } from '../../log/events.ts';
import type { Write } from '../../log/logger.ts';
import { StartError } from '../../start-error.ts';
import { consoleLog } from '../console-log.ts';

/** Said by a command too: a database that is made, and a migration, are for good. */
const told: LogEvent[] = ['database.created', 'database.migrated'];
const info: Write = (context, message) => {
  if (told.includes(context.event)) consoleLog.warn(context, message);
};
const log = { ...consoleLog, info };

type Found = { connectionString: string; release(): Promise<void> };

/** A database that has this program's schema, and where its tables are. */
export type ReachedDatabase = Found & { schema: string };

/**
 * The database that is configured; without one the embedded database, beside the service that runs
 * on it, or started for as long as this takes.
 */
export async function reachDatabase(config: Config): Promise<ReachedDatabase> {
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
 * Refuses a data directory without a database, as starting the embedded one would make it: a mistyped `DATA_DIR` would
 * look like a service that has nothing.
 */
export async function requireDatabase({ databaseUrl, dataDir }: Config): Promise<void> {
  if (databaseUrl !== null) return;
  if (!(await stat(join(dataDir, 'postgresql')).catch(() => null)))
    throw new StartError(`DATA_DIR ${dataDir}: holds no database.`);
}

/** The same with the schema that it has. */
export async function reachUnchanged({ databaseUrl, dataDir }: Config): Promise<Found> {
  if (databaseUrl !== null) return { connectionString: databaseUrl, release: async () => {} };
  const running = await findRunning(dataDir);
  if (running !== null) return { connectionString: running, release: async () => {} };
  const { connectionString, stop } = await startEmbeddedDatabase({ dataDir, log });
  return { connectionString, release: stop };
}

/** Not for a server of an earlier version, whose database the superuser owns: `startEmbeddedDatabase` hands it over. */
async function findRunning(dataDir: string): Promise<string | null> {
  const { clusterDir } = await findCluster(dataDir);
  const postmaster = clusterDir === null ? null : await findPostmaster(clusterDir);
  const service = await findService(dataDir);
  if (postmaster === null || service === null || isEarlier(postmaster.address)) return null;
  const url = connectionStringOf(postmaster.address, service, databaseName);
  return (await canLogIn(url)) ? url : null;
}
