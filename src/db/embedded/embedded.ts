import { readFile } from 'node:fs/promises';
import { StartError } from '../../start-error.ts';
import { refuseUnfinishedDir } from '../portable/unfinished-dir.ts';
import { connectionStringOf, stopCluster } from './cluster.ts';
import { ensureDatabase, takeServiceLock } from './guard.ts';
import { checkVersion, launch, type Launch } from './launch.ts';
import { findCluster, makeCluster } from './location.ts';
import { createEmbeddedCluster, databaseName, passwordFileOf, readOrMakePassword } from './make.ts';
import { placePrograms, sharedDir } from './place.ts';
import { findPostmaster } from './postmaster.ts';
import { findPackagedPostgres } from './programs.ts';
import { supervise } from './supervise.ts';

export type EmbeddedLog = { info(message: string): void; warn(message: string): void };

export type EmbeddedDatabase = {
  connectionString: string;
  /** Where PostgreSQL's files really are. */
  clusterDir: string;
  /** Ends the sessions and stops the server; in the last third of `withinMs` without writing out. */
  stop(withinMs?: number): Promise<void>;
};

const lockTimeoutMs = 3_000;
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
  const { port, adopted } = await launch(prepared);
  const adminUrl = connectionStringOf(port, prepared.password, 'postgres');
  const held = await takeServiceLock(adminUrl, lockTimeoutMs);
  if (held.heldBy !== null)
    throw new StartError(
      `DATA_DIR ${dataDir}: another Sensorium (${held.heldBy}) is running on it. Stop that one, or give this one a DATA_DIR and ports of its own.`,
    );
  if (adopted) log.info('Took over the database that an earlier process left running.');
  await ensureDatabase(held.client, databaseName);
  const supervisor = supervise({
    connection: held,
    log,
    async recover() {
      if ((await findPostmaster(prepared.clusterDir)) === null) await launch(prepared, port);
      const again = await takeServiceLock(adminUrl, lockTimeoutMs);
      if (again.heldBy !== null) throw new Error(`The database is now used by ${again.heldBy}.`);
      return again;
    },
  });
  return {
    connectionString: connectionStringOf(port, prepared.password, databaseName),
    clusterDir: prepared.clusterDir,
    async stop(withinMs = stopTimeoutMs) {
      await supervisor.stop();
      await stopServer(prepared, log, withinMs);
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
    const password = await readPassword(passwordFileOf(dataDir));
    return { programs, clusterDir: found, password };
  }
  await refuseUnfinishedDir(dataDir);
  const password = await readOrMakePassword(dataDir);
  log.info(`Making a database in ${dataDir} (first start).`);
  const { clusterDir, movedTo } = await makeCluster(dataDir, owner, (dir) =>
    createEmbeddedCluster(programs, dir, password),
  );
  if (owner && (programs.moved || movedTo !== null)) {
    const what = [programs.moved && 'programs', movedTo !== null && 'data'].filter(Boolean);
    log.info(
      `PostgreSQL cannot run as root; as user ${owner.name} it cannot reach this directory, so its ${what.join(' and ')} went to ${movedTo ?? sharedDir}.`,
    );
  }
  return { programs, clusterDir, password };
}

async function readPassword(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw new StartError(
      `${file}: cannot be read, and without it the database beside it does not open.`,
      { cause: error },
    );
  }
}

async function stopServer(
  { programs, clusterDir }: Launch,
  log: EmbeddedLog,
  withinMs: number,
): Promise<void> {
  // pg_ctl knows whole seconds, and one at least.
  const seconds = (part: number) => Math.max(1, Math.floor((withinMs / 1_000) * part));
  if ((await findPostmaster(clusterDir)) === null) return;
  try {
    await stopCluster(programs, clusterDir, 'fast', seconds(2 / 3));
  } catch {
    log.warn(
      'The database takes long to stop: it is stopped at once, and recovers when it starts.',
    );
    await stopCluster(programs, clusterDir, 'immediate', seconds(1 / 3));
  }
}
