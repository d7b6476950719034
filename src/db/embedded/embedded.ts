import { dirname } from 'node:path';
import { refuseUnfinishedDir } from '../portable/unfinished-dir.ts';
import { connectionStringOf, type ServerAddress } from './address.ts';
import { enterAsService, lockAs } from './enter.ts';
import { inUse } from './in-use.ts';
import { checkVersion, launch, removeAddress, type Launch } from './launch.ts';
import { findCluster, makeCluster } from './location.ts';
import { createEmbeddedCluster, databaseName } from './make.ts';
import { placePrograms, sharedDir } from './place-programs.ts';
import { findPostmaster } from './postmaster.ts';
import { findPackagedPostgres, ProgramError } from './programs.ts';
import { readOrMakeSuperuserPassword } from './secrets.ts';
import { removeOtherSocketDirs } from './socket-dir.ts';
import { stopCluster } from './stop-cluster.ts';
import { supervise } from './supervise.ts';
import type { Log } from '../../log/logger.ts';
import { StartError } from '../../start-error.ts';

export type EmbeddedLog = Pick<Log, 'info' | 'warn'>;

export type EmbeddedDatabase = {
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
  const { held, service } = await enterAsService(dataDir, address, log);
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
  log.info({ event: 'database.created' }, `Making a database in ${dataDir} (first start).`);
  const { clusterDir, movedTo } = await makeCluster(dataDir, owner, (dir) =>
    createEmbeddedCluster(programs, dir, password),
  ).catch((error: unknown) => {
    throw error instanceof ProgramError ? notMade(dataDir, error) : error;
  });
  if (owner && (programs.moved || movedTo !== null)) {
    const what = [programs.moved && 'programs', movedTo !== null && 'data'].filter(Boolean);
    log.info(
      { event: 'database.moved' },
      `PostgreSQL cannot run as root; as user ${owner.name} it cannot reach this directory, so its ${what.join(' and ')} went to ${movedTo ?? sharedDir}.`,
    );
  }
  return { programs, clusterDir, dataDir };
}

/** Mostly a disk that is full: the programs' own words say it. */
function notMade(dataDir: string, error: ProgramError): StartError {
  const words = /(?:FATAL|PANIC|error): +(.*)/.exec(error.output)?.[1] ?? error.output.slice(-300);
  return new StartError(
    `DATA_DIR ${dataDir}: PostgreSQL could not make a database there (${words || error.message}). Make room there, or choose another directory with DATA_DIR.`,
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
        'The database takes long to stop: it is stopped at once, and recovers when it starts.',
      );
      await stopCluster(programs, clusterDir, 'immediate', seconds(1 / 3));
    }
  }
  await removeAddress({ programs }, address);
}
