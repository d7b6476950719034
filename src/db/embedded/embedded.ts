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
  /** Of the service's own role, which owns what is in its database. */
  connectionString: string;
  /** Where PostgreSQL's files really are. */
  clusterDir: string;
  /** Ends the sessions and stops the server; in the last third of `withinMs` without writing out. */
  stop(withinMs?: number): Promise<void>;
};

/** A stop that takes longer is left to the next start's recovery: nothing committed is lost by it. */
const stopTimeoutMs = 10_000;

/**
 * Runs the PostgreSQL that npm installed on `dataDir`: made on the first start, taken over where a
 * killed process left it running, started again if it ends by itself, one service at a time. Throws
 * a StartError for what its user can mend.
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
      // One that ran before may be another's.
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

/** Finds or makes the cluster, and programs that its user can run. */
async function prepareCluster(dataDir: string, log: EmbeddedLog): Promise<Launch> {
  // Before anything is made that the next start would find.
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

/** Mostly a disk that is full: the programs' own words say it. */
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
  // pg_ctl knows whole seconds, and one at least.
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
  /** The connection whose end says that the server, or this session with it, is gone. */
  connection: GuardConnection;
  log: Pick<Log, 'info' | 'warn'>;
  /** Starts the server where it no longer runs, and gives a new connection to watch. */
  recover: () => Promise<GuardConnection>;
};

const retry = { firstMs: 100, maxMs: 2_000 };

/** Watches over the server for as long as the service runs. */
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
