import { spawnSync } from 'node:child_process';
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '../../start-error.ts';
import { findOwner } from './owner.ts';
import { sharedDir } from './place-programs.ts';
import type { SystemUser } from './programs.ts';
import { messageOf } from '../../lib/thrown.ts';

/** Where the cluster of a data directory is (or null: not made yet), and who runs it. */
export type Location = { clusterDir: string | null; owner: SystemUser | null };

/** Below the data directory: the cluster, or a link to where it had to be put. */
const name = 'postgresql';

/** Makes the data directory and looks for a cluster in it. */
export async function findCluster(dataDir: string): Promise<Location> {
  try {
    if (await mkdir(dataDir, { recursive: true })) await chmod(dataDir, 0o755);
    const probe = await mkdtemp(join(dataDir, '.probe-'));
    await rm(probe, { recursive: true });
  } catch (error) {
    throw unwritable(dataDir, error);
  }
  const found = await stat(join(dataDir, name)).catch(() => null);
  if (found === null) return { clusterDir: null, owner: findOwner() };
  const clusterDir = await realpath(join(dataDir, name));
  const uid = process.getuid?.();
  if (uid === undefined || found.uid === uid) return { clusterDir, owner: null };
  if (uid !== 0)
    throw new StartError(
      `DATA_DIR ${dataDir}: its database belongs to another user (${found.uid}). Start as that user or as root, or choose another DATA_DIR.`,
    );
  const owner = { name: `user ${found.uid}`, uid: found.uid, gid: found.gid };
  if (!canWrite(owner, clusterDir))
    throw new StartError(
      `DATA_DIR ${dataDir}: ${owner.name}, who owns its database, cannot reach ${clusterDir}.`,
    );
  return { clusterDir, owner };
}

/**
 * Makes a place for a new cluster, has `create` fill it and only then gives it its name: what an
 * interrupted first start left is never taken for a database. `movedTo` says where it had to be put
 * because its user cannot reach the data directory.
 */
export async function makeCluster(
  dataDir: string,
  owner: SystemUser | null,
  create: (clusterDir: string) => Promise<void>,
): Promise<{ clusterDir: string; movedTo: string | null }> {
  await removeUnfinished(dataDir);
  // A name of its own: programs that a killed process left may go on writing into what it made.
  const here = join(dataDir, `${name}.new-${process.pid}`);
  await makeOwned(here, owner);
  if (owner === null || canWrite(owner, here)) {
    await create(here);
    await rename(here, join(dataDir, name));
    return { clusterDir: await realpath(join(dataDir, name)), movedTo: null };
  }
  await rm(here, { recursive: true });
  await mkdir(sharedDir, { recursive: true, mode: 0o755 });
  const elsewhere = await mkdtemp(join(sharedDir, 'data-'));
  await chmod(elsewhere, 0o755);
  const clusterDir = join(elsewhere, name);
  await makeOwned(clusterDir, owner);
  await create(clusterDir);
  await symlink(clusterDir, join(dataDir, name));
  return { clusterDir, movedTo: elsewhere };
}

async function removeUnfinished(dataDir: string): Promise<void> {
  for (const found of await readdir(dataDir))
    if (found.startsWith(`${name}.new`)) await removeDir(join(dataDir, found));
}

/** Removes a directory, also while programs that are about to end still write into it. */
export async function removeDir(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}

async function makeOwned(dir: string, owner: SystemUser | null): Promise<void> {
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { mode: 0o700 });
  if (owner) await chown(dir, owner.uid, owner.gid);
}

/** Asked as that user: no reading of modes knows about every directory above, or access lists. */
export function canWrite(owner: SystemUser, dir: string): boolean {
  const test = spawnSync('/bin/sh', ['-c', 'test -w "$1" && cd "$1"', 'sh', dir], {
    cwd: '/',
    uid: owner.uid,
    gid: owner.gid,
    stdio: 'ignore',
  });
  return test.status === 0;
}

const isAFile = (error: unknown) =>
  ['EEXIST', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');

function unwritable(dataDir: string, error: unknown): StartError {
  const reason = isAFile(error) ? 'it is a file, or below one' : messageOf(error);
  return new StartError(
    `DATA_DIR ${dataDir}: cannot be written (${reason}). Choose another directory with DATA_DIR, or give this user the right to write there.`,
    { cause: error },
  );
}
