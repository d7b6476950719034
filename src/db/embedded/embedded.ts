import { dirname } from 'node:path';
import { backoffMs, pause } from '../../lib/wait.ts';
import type { Log } from '../../log/logger.ts';
import { StartError } from '../../start-error.ts';
import { refuseUnfinishedDir } from '../portable/unfinished.ts';
import {
  connectionStringOf,
  findCluster,
  findPostmaster,
  inUse,
  makeCluster,
  removeOtherSocketDirs,
  type ServerAddress,
  stopCluster,
} from './cluster.ts';
import {
  checkVersion,
  createEmbeddedCluster,
  databaseName,
  enterAsService,
  type GuardConnection,
  launch,
  type Launch,
  lockAs,
  readOrMakeSuperuserPassword,
  removeAddress,
} from './enter.ts';
import { findPackagedPostgres, placePrograms, ProgramError, sharedDir } from './programs.ts';

type EmbeddedLog = Pick<Log, 'info' | 'warn'>;

type EmbeddedDatabase = {
  /** For the service's own role, which owns what is in its database. */
  connectionString: string;
  /** The real path of PostgreSQL's files. */
  clusterDir: string;
  /** Ends the sessions and stops the server. In the last third of `withinMs` it stops without writing out. */
  stop(withinMs?: number): Promise<void>;
};

/** After this the next start recovers instead. That loses nothing that was committed. */
const stopTimeoutMs = 10_000;

/**
 * Runs the PostgreSQL that npm installed on `dataDir`: creates the cluster on the first start, takes over a server that
 * a killed process left running, and restarts it if it ends by itself. Only one service may use it. Throws a StartError
 * for a problem that the user can fix.
 */
export async function startEmbeddedDatabase({
  dataDir,
  log,
}: {
  dataDir: string;
  log: EmbeddedLog;
}): Promise<EmbeddedDatabase> {
  const prepared = await prepareCluster(dataDir, log);
  const { address, adopted } = await launch(prepared);
  const { held, service } = await enterAsService(dataDir, address, log).catch(
    async (error: unknown) => {
      // A server that was already running may belong to another service.
      if (!adopted) await stopServer(prepared, address, log, stopTimeoutMs);
      throw error;
    },
  );
  if (held.heldBy !== null) throw inUse(dataDir, held.heldBy);
  const { clusterDir, programs } = prepared;
  await removeOtherSocketDirs(dirname(clusterDir), address.socketDir, programs.owner);
  if (adopted)
    log.info(
      { event: 'database.adopted' },
      'Took over the database that an earlier process left running.',
    );
  const supervisor = supervise({
    connection: held,
    log,
    async recover() {
      if ((await findPostmaster(clusterDir)) === null) await launch(prepared, address);
      const again = await lockAs(address, service);
      if (again.heldBy !== null) throw new Error(`The database is now used by ${again.heldBy}.`);
      return again;
    },
  });
  return {
    connectionString: connectionStringOf(address, service, databaseName),
    clusterDir,
    async stop(withinMs = stopTimeoutMs) {
      await supervisor.stop();
      await stopServer(prepared, address, log, withinMs);
    },
  };
}

/** Finds or creates the cluster, and programs that its user can run. */
async function prepareCluster(dataDir: string, log: EmbeddedLog): Promise<Launch> {
  // First, so that a failure leaves nothing that the next start would find.
  const packaged = findPackagedPostgres();
  const { clusterDir: found, owner } = await findCluster(dataDir);
  const programs = await placePrograms(packaged, owner);
  if (found !== null) {
    await checkVersion({ programs, clusterDir: found });
    return { programs, clusterDir: found, dataDir };
  }
  await refuseUnfinishedDir(dataDir);
  const password = await readOrMakeSuperuserPassword(dataDir);
  log.info({ event: 'database.created' }, `Creating a database in ${dataDir} (first start).`);
  const { clusterDir, movedTo } = await makeCluster(dataDir, owner, (dir) =>
    createEmbeddedCluster(programs, dir, password),
  ).catch((error: unknown) => {
    throw error instanceof ProgramError ? notMade(dataDir, error) : error;
  });
  if (owner && (programs.moved || movedTo !== null)) {
    const what = [programs.moved && 'programs', movedTo !== null && 'data'].filter(Boolean);
    log.info(
      { event: 'database.moved' },
      `PostgreSQL cannot run as root, and user ${owner.name} cannot reach this directory, so its ${what.join(' and ')} went to ${movedTo ?? sharedDir}.`,
    );
  }
  return { programs, clusterDir, dataDir };
}

/** Usually the disk is full; the program's own message says so. */
function notMade(dataDir: string, error: ProgramError): StartError {
  const words = /(?:FATAL|PANIC|error): +(.*)/.exec(error.output)?.[1] ?? error.output.slice(-300);
  return new StartError(
    `DATA_DIR ${dataDir}: PostgreSQL could not create a database there ` +
      `(${words || error.message}). Free some space there, or choose another directory with ` +
      'DATA_DIR.',
    { cause: error },
  );
}

async function stopServer(
  { programs, clusterDir }: Launch,
  address: ServerAddress,
  log: EmbeddedLog,
  withinMs: number,
): Promise<void> {
  // pg_ctl takes whole seconds, at least one.
  const seconds = (part: number) => Math.max(1, Math.floor((withinMs / 1_000) * part));
  if ((await findPostmaster(clusterDir)) !== null) {
    try {
      await stopCluster(programs, clusterDir, 'fast', seconds(2 / 3));
    } catch (err) {
      log.warn(
        { event: 'database.stop-slow', err },
        'The database is slow to stop; stopping it immediately. It recovers at the next start.',
      );
      await stopCluster(programs, clusterDir, 'immediate', seconds(1 / 3));
    }
  }
  await removeAddress({ programs }, address);
}

type SuperviseOptions = {
  /** The connection to watch: it ends when the server or its own session is gone. */
  connection: GuardConnection;
  log: Pick<Log, 'info' | 'warn'>;
  /** Starts the server if it no longer runs, and returns a new connection to watch. */
  recover: () => Promise<GuardConnection>;
};

const retry = { firstMs: 100, maxMs: 2_000 };

/** Restarts the server if it ends while the service runs. */
function supervise({ connection, log, recover }: SuperviseOptions): {
  stop(): Promise<void>;
} {
  const stopping = new AbortController();
  let current = connection;
  const watching = watch();
  return {
    async stop() {
      stopping.abort();
      await current.client.end().catch(() => undefined);
      await watching;
    },
  };

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      await current.ended;
      if (stopping.signal.aborted) return;
      log.warn(
        { event: 'database.lost' },
        'The connection that watches the database was lost; starting the database again if it has stopped.',
      );
      await bringBack();
    }
  }

  async function bringBack(): Promise<void> {
    for (let failures = 1; !stopping.signal.aborted; failures += 1) {
      try {
        current = await recover();
        log.info({ event: 'database.back' }, 'The database is back.');
        return;
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        log.warn({ event: 'database.away', reason }, 'The database is not back yet.');
      }
      await pause(backoffMs(failures, retry), stopping.signal);
    }
  }
}
