import { randomUUID } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { openDatabase } from '../db/database.ts';
import type { Database, DatabaseOptions } from '../db/database.ts';
import { startEmbeddedDatabase } from '../db/embedded/embedded.ts';
import { migrate } from '../db/migrate.ts';
import { processName } from '../db/other-processes.ts';
import { createPatience, withTimeout } from '../db/patience.ts';
import { shareOut, type SharedDatabase } from '../db/shares.ts';
import type { Sql } from '../db/sql.ts';
import { describeStorage } from '../db/storage.ts';
import { watchSchema, type SchemaWatch } from '../db/watch-schema.ts';
import { createWriteProbe, type WriteProbe } from '../db/write-probe.ts';
import { systemClock } from '../lib/clock.ts';
import type { ServiceLog } from '../log/logger.ts';
import { version } from '../version.ts';
import type { ReleaseSteps } from './shutdown.ts';

export type OpenStorage = {
  connectionString: string;
  /** Opens connections of its own: what requests do does not wait for what devices do. */
  open(maxConnections: number, options?: Partial<DatabaseOptions>): Database;
  /** The same for all who share them, failing soon with `unavailable` where the server does not answer. */
  openShared(maxConnections: number): SharedDatabase;
  /** When a transaction of this process was committed last, ms since the epoch; null: none was. */
  lastCommitTs(): number | null;
  /** Tries whether a commit returns. */
  writeProbe: WriteProbe;
  /** Looks, through `sql`, whether a later version has taken the tables away from this one; told once. */
  watchTables(sql: Sql, onMoved: (lines: string[]) => void): void;
};

/** A request waits twice this and a round trip for a database that hangs: below 2 s. */
const patienceMs = 700;

/** A probe's commit that hangs is looked at, and not given up for so long. */
const probeTimeoutMs = 3_600_000;

/** Brings the database to this program's schema, and opens connections to it. */
export async function openStorage(
  config: Config,
  connectionString: string,
  serviceLog: ServiceLog,
  releases: ReleaseSteps,
): Promise<OpenStorage> {
  const log = serviceLog.child({ component: 'database' });
  const storage = await migrate(connectionString, { log });
  log.info({ event: 'database.storage' }, `The history is kept in ${describeStorage(storage)}.`);

  const onIdleError = (err: unknown) =>
    log.warn(
      { event: 'database.connection-lost', err },
      'A database connection was lost; another one is opened when it is needed.',
    );
  const { connectTimeoutMs, statementTimeoutMs } = config.database;
  let watch: SchemaWatch | undefined;
  let lastCommitTs: number | null = null;
  const defaults = {
    connectionString,
    schema: storage.schema,
    applicationName: processName(randomUUID().slice(0, 8)),
    connectTimeoutMs,
    statementTimeoutMs,
    onIdleError,
    onCommitted: () => void (lastCommitTs = systemClock()),
    onMissingTable: () => watch?.look(),
  };
  const open = (maxConnections: number, options: Partial<DatabaseOptions> = {}) => {
    const database = openDatabase({ ...defaults, ...options, maxConnections });
    releases.add('database connections', (withinMs) => database.close(withinMs));
    return database;
  };
  const openShared = (connections: number) => {
    const pinger = open(1, { statementTimeoutMs: patienceMs });
    const ping = () => withTimeout(pinger.query('select 1'), patienceMs);
    const wait = createPatience({ patienceMs, ping });
    return shareOut(open(connections), { connections, wait, turnMs: statementTimeoutMs });
  };
  const watchTables = (sql: Sql, onMoved: (lines: string[]) => void) => {
    watch = watchSchema({ sql, schema: storage.schema, version, onMoved });
    releases.add('watch of the tables', watch.stop);
  };
  const look = open(1, { statementTimeoutMs: patienceMs });
  const writeProbe = createWriteProbe({
    open: () => openDatabase({ ...defaults, maxConnections: 1, answerTimeoutMs: probeTimeoutMs }),
    look,
  });
  const lastCommit = () => lastCommitTs;
  return { connectionString, open, openShared, watchTables, writeProbe, lastCommitTs: lastCommit };
}

/** Where the database is: the one that is configured, or the embedded one, which is started. */
export async function findDatabase(
  config: Config,
  serviceLog: ServiceLog,
  releases: ReleaseSteps,
): Promise<string> {
  if (config.databaseUrl !== null) return config.databaseUrl;
  const log = serviceLog.child({ component: 'database' });
  const embedded = await startEmbeddedDatabase({ dataDir: config.dataDir, log });
  releases.add('embedded database', (withinMs) => embedded.stop(withinMs));
  return embedded.connectionString;
}
