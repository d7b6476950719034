import { stat } from 'node:fs/promises';
import type pg from 'pg';
import { StartError } from '../../start-error.ts';
import {
  connectionStringOf,
  findFreePort,
  startCluster,
  stopCluster,
} from '../embedded/cluster.ts';
import { createEmbeddedCluster, databaseName, readOrMakePassword } from '../embedded/make.ts';
import { ensureDatabase, takeServiceLock } from '../embedded/guard.ts';
import { findCluster, makeCluster, removeDir } from '../embedded/location.ts';
import { placePrograms } from '../embedded/place.ts';
import { adoptPostmaster, findPostmaster } from '../embedded/postmaster.ts';
import { findPackagedPostgres, type Programs } from '../embedded/programs.ts';
import { embeddedSettings } from '../embedded/settings.ts';
import { findUnfinishedCluster, markUnfinishedDir, unmarkUnfinishedDir } from './unfinished-dir.ts';

const timeoutSeconds = 120;
const adoptTimeoutMs = 10_000;
const lockTimeoutMs = 1_000;

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
  const password = await readOrMakePassword(dataDir);
  await clearInterrupted(dataDir, programs, password);
  await makeCluster(dataDir, owner, async (dir) => {
    await markUnfinishedDir(dataDir, dir);
    try {
      await createEmbeddedCluster(programs, dir, password);
      await runAndFill(programs, dir, password, fill);
    } catch (error) {
      await removeDir(dir);
      await unmarkUnfinishedDir(dataDir);
      throw error;
    }
  });
  await unmarkUnfinishedDir(dataDir);
}

async function runAndFill(
  programs: Programs,
  clusterDir: string,
  password: string,
  fill: (connectionString: string) => Promise<void>,
): Promise<void> {
  const port = await findFreePort();
  const settings = embeddedSettings();
  await startCluster(programs, clusterDir, { settings, port, timeoutSeconds });
  try {
    const held = await takeLock(port, password);
    if (held === null) throw new Error('Somebody else uses a database that was just made.');
    try {
      await ensureDatabase(held, databaseName);
      await fill(connectionStringOf(port, password, databaseName));
    } finally {
      await held.end();
    }
  } finally {
    await stopCluster(programs, clusterDir, 'fast', timeoutSeconds);
  }
}

/** A restore that was killed leaves its server running; one that goes on holds the lock. */
async function clearInterrupted(
  dataDir: string,
  programs: Programs,
  password: string,
): Promise<void> {
  const clusterDir = await findUnfinishedCluster(dataDir);
  if (clusterDir === null || !(await stat(clusterDir).catch(() => null))) return;
  if (await findPostmaster(clusterDir)) {
    const port = await adoptPostmaster(clusterDir, password, adoptTimeoutMs);
    const held = port === null ? null : await takeLock(port, password);
    if (port !== null && held === null)
      throw new StartError(`DATA_DIR ${dataDir}: another restore is filling it.`);
    await held?.end();
    await stopCluster(programs, clusterDir, 'immediate', timeoutSeconds);
  }
  await removeDir(clusterDir);
}

async function takeLock(port: number, password: string): Promise<pg.Client | null> {
  const held = await takeServiceLock(connectionStringOf(port, password, 'postgres'), lockTimeoutMs);
  return held.heldBy === null ? held.client : null;
}
