import { chown, lstat, mkdir, mkdtemp, readdir, realpath, rm, rmdir, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { ask, sslRequest } from '../../lib/servers.ts';
import { StartError } from '../../start-error.ts';
import { canWrite } from './location.ts';
import type { SystemUser } from './programs.ts';

/** Only a part of the socket's name: each server has a directory of its own. */
export const socketPort = 5432;

const socketName = `.s.PGSQL.${socketPort}`;
const prefix = 'sensorium-socket-';
/** sun_path: 104 bytes on macOS, 108 on Linux, with the zero at the end (unix(4), unix(7)). */
const longestSocketPath = 103;
const longestBase = longestSocketPath - `/${prefix}XXXXXX/${socketName}`.length;
/** PostgreSQL parts a list of directories at commas; pg_ctl hands settings to a shell. */
const plainPath = /^\/[\w/.+@:-]*$/;

/**
 * Makes a new directory for a server's socket, which nobody but its user may enter, in the first of
 * `bases` that has room for one. Its name is new each time, so whatever another user made before is
 * never taken for it. Throws a StartError where none will do.
 */
export async function makeSocketDir(bases: string[], owner: SystemUser | null): Promise<string> {
  const tried = [...new Set(bases)];
  for (const base of tried) {
    const dir = await tryBase(base, owner);
    if (dir !== null) return dir;
  }
  throw new StartError(
    `No place for the database's socket in ${tried.join(', ')}: expected a directory that PostgreSQL's user can reach, whose path has at most ${longestBase} bytes, all of them letters, digits or one of /._+@:-. Name one with TMPDIR.`,
  );
}

/** Where clients connect to. */
export function socketPathIn(dir: string): string {
  return join(dir, socketName);
}

async function tryBase(base: string, owner: SystemUser | null): Promise<string | null> {
  const real = await realpath(base).catch(() => null);
  if (real === null || !plainPath.test(real) || real.length > longestBase) return null;
  if (await isAnybodysToChange(real)) return null;
  const dir = await mkdtemp(join(real, prefix)).catch(() => null);
  if (dir === null) return null;
  if (owner) await chown(dir, owner.uid, owner.gid);
  if ((owner === null || canWrite(owner, dir)) && (await takesSockets(dir))) return dir;
  await rmdir(dir);
  return null;
}

/** Without the sticky bit (as /tmp has it) anybody could put a directory of theirs in its place. */
async function isAnybodysToChange(dir: string): Promise<boolean> {
  const { mode } = await stat(dir);
  return (mode & 0o002) !== 0 && (mode & 0o1000) === 0;
}

/** Some file systems, of shared folders for example, have no sockets. */
async function takesSockets(dir: string): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(socketPathIn(dir), () => server.close(() => resolve(true)));
  });
}

/**
 * Makes the directory of a server that ended ready for the next one, under its name: clients know it.
 * Throws a StartError where something else is in its place.
 */
export async function renewSocketDir(dir: string, owner: SystemUser | null): Promise<void> {
  const isNew = await mkdir(dir, { mode: 0o700 }).then(
    () => true,
    () => false,
  );
  if (isNew && owner) await chown(dir, owner.uid, owner.gid);
  if (!(await isPrivateDir(dir, owner)))
    throw new StartError(
      `${dir}: expected the directory of the database's socket, which is for its user alone. Remove what is there.`,
    );
  await removeSocket(dir);
}

/** Whether this is a directory, no link to one, that only the server's user may enter. */
export async function isPrivateDir(dir: string, owner: SystemUser | null): Promise<boolean> {
  const found = await lstat(dir).catch(() => null);
  const uid = owner?.uid ?? process.getuid?.();
  return found?.isDirectory() === true && found.uid === uid && (found.mode & 0o777) === 0o700;
}

/** Removes what a server that has ended left; anything else is left alone. */
export async function removeSocketDir(dir: string, owner: SystemUser | null): Promise<void> {
  if (!(await isPrivateDir(dir, owner))) return;
  await removeSocket(dir);
  await rmdir(dir).catch(() => undefined);
}

/** Removes from `base` what servers left that were killed; the one of a server that runs is `kept`. */
export async function removeOtherSocketDirs(
  base: string,
  kept: string | null,
  owner: SystemUser | null,
): Promise<void> {
  for (const name of await readdir(base)) {
    const dir = join(base, name);
    if (!name.startsWith(prefix) || dir === kept) continue;
    const { kind } = await ask({ path: socketPathIn(dir) }, sslRequest, { timeoutMs: 1_000 });
    if (kind === 'failed') await removeSocketDir(dir, owner);
  }
}

/** The number in a lock file may have been given to another process: PostgreSQL would not start. */
async function removeSocket(dir: string): Promise<void> {
  for (const name of [socketName, `${socketName}.lock`]) await rm(join(dir, name), { force: true });
}
