import type { Config } from '../config.ts';
import { openDatabase } from '../db/database.ts';
import type { Database } from '../db/database.ts';
import { startEmbeddedDatabase } from '../db/embedded/embedded.ts';
import { migrate } from '../db/migrate.ts';
import { describeStorage } from '../db/storage.ts';
import type { Logger } from '../log.ts';
import type { Releases } from './releases.ts';

export type OpenStorage = {
  connectionString: string;
  /** Opens connections of its own: what requests do does not wait for what devices do. */
  open(maxConnections: number): Database;
};

/** The database that is configured, or the embedded one, brought to this program's schema. */
export async function openStorage(
  config: Config,
  log: Logger,
  releases: Releases,
): Promise<OpenStorage> {
  const connectionString = config.databaseUrl ?? (await startEmbedded(config, log, releases));
  const storage = await migrate(connectionString, { log });
  log.info(`The history is kept in ${describeStorage(storage)}.`);

  const { connectTimeoutMs, statementTimeoutMs } = config.database;
  const open = (maxConnections: number) => {
    const database = openDatabase({
      connectionString,
      maxConnections,
      connectTimeoutMs,
      statementTimeoutMs,
      onIdleError: (err) => log.warn({ err }, 'a database connection was lost'),
    });
    releases.add(() => database.close());
    return database;
  };
  return { connectionString, open };
}

async function startEmbedded(config: Config, log: Logger, releases: Releases): Promise<string> {
  const embedded = await startEmbeddedDatabase({ dataDir: config.dataDir, log });
  releases.add(() => embedded.stop());
  return embedded.connectionString;
}
