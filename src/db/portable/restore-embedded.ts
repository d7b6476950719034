import { stat } from 'node:fs/promises';
import { StartError } from '../../start-error.ts';
import { connectionStringOf, type ServerAddress } from '../embedded/address.ts';
import { readPostmasterFile, startCluster } from '../embedded/cluster.ts';
import { stopCluster } from '../embedded/stop-cluster.ts';
import { enterAsService, lockAsSuperuser } from '../embedded/enter.ts';
import { makeAddress, removeAddress, type Launch } from '../embedded/launch.ts';
import { findCluster, makeCluster, removeDir } from '../embedded/location.ts';
import { createEmbeddedCluster, databaseName } from '../embedded/make.ts';
import { placePrograms } from '../embedded/place-programs.ts';
import { adoptPostmaster, findPostmaster } from '../embedded/postmaster.ts';
import { findPackagedPostgres, type Programs } from '../embedded/programs.ts';
import { readOrMakeSuperuserPassword } from '../embedded/secrets.ts';
import { embeddedSettings } from '../embedded/settings.ts';
import { findUnfinishedCluster, markUnfinishedDir, unmarkUnfinishedDir } from './unfinished-dir.ts';

const timeoutSeconds = 120;
const adoptTimeoutMs = 10_000;
/** In a database that was just made nothing is in the way. */
const quiet = { warn: () => undefined };

/**
 * Makes a database in a data directory that has none, has `fill` fill it while nobody else can reach
 * it, and only then gives it its place. Throws a StartError where there is one already.
 */
export async function restoreEmbedded(
  dataDir: string,
  fill: (connectionString: string) => Promise<void>,
): Promise<void> {
  const { clusterDir: found, owner } = await findCluster(dataDir);
  if (found !== null)
    throw new StartError(
      `DATA_DIR ${dataDir}: holds a database already. Move it away, or choose another DATA_DIR.`,
    );
  const programs = await placePrograms(findPackagedPostgres(), owner);
  const password = await readOrMakeSuperuserPassword(dataDir);
  await clearInterrupted(dataDir, programs);
  await makeCluster(dataDir, owner, async (dir) => {
    await markUnfinishedDir(dataDir, dir);
    try {
      await createEmbeddedCluster(programs, dir, password);
      await runAndFill({ programs, clusterDir: dir, dataDir }, fill);
    } catch (error) {
      await removeDir(dir);
      await unmarkUnfinishedDir(dataDir);
      throw error;
    }
  });
  await unmarkUnfinishedDir(dataDir);
}

async function runAndFill(
  { programs, clusterDir, dataDir }: Launch,
  fill: (connectionString: string) => Promise<void>,
): Promise<void> {
  const address = await makeAddress({ programs, clusterDir });
  try {
    const settings = embeddedSettings();
    await startCluster(programs, clusterDir, { settings, address, timeoutSeconds });
    try {
      const { held, service } = await enterAsService(dataDir, address, quiet);
      if (held.heldBy !== null) throw new Error('Somebody else uses a database just made.');
      try {
        await fill(connectionStringOf(address, service, databaseName));
      } finally {
        await held.client.end();
      }
    } finally {
      await stopCluster(programs, clusterDir, 'fast', timeoutSeconds);
    }
  } finally {
    await removeAddress({ programs }, address);
  }
}

/** A restore that was killed leaves its server running; one that goes on holds the lock. */
async function clearInterrupted(dataDir: string, programs: Programs): Promise<void> {
  const clusterDir = await findUnfinishedCluster(dataDir);
  if (clusterDir === null || !(await stat(clusterDir).catch(() => null))) return;
  const written = await readPostmasterFile(clusterDir);
  if (await findPostmaster(clusterDir)) {
    const address = await adoptPostmaster(clusterDir, programs.owner, adoptTimeoutMs);
    if (address !== null) await refuseBusy(dataDir, address);
    await stopCluster(programs, clusterDir, 'immediate', timeoutSeconds);
  }
  if (written) await removeAddress({ programs }, written.address);
  await removeDir(clusterDir);
}

async function refuseBusy(dataDir: string, address: ServerAddress): Promise<void> {
  const { held } = await lockAsSuperuser(dataDir, address);
  if (held.heldBy !== null)
    throw new StartError(`DATA_DIR ${dataDir}: another restore is filling it.`);
  await held.client.end();
}
