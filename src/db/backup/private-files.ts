import { chmod, copyFile, lstat, readFile, stat } from 'node:fs/promises';
import { StartError } from '../../start-error.ts';

/** Copies a file that only its owner may read; does nothing where it is missing (the secret may be given otherwise). */
export async function copyPrivate(from: string, to: string): Promise<boolean> {
  if (!(await exists(from))) return false;
  await copyFile(from, to);
  await chmod(to, 0o600);
  return true;
}

/**
 * Throws a StartError for what is there and neither a file nor a directory: a link in a backup would have its
 * restore, which may run as root, read any file of this machine.
 */
export async function refuseLink(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null);
  if (found && !found.isFile() && !found.isDirectory()) throw linkRefused(path);
}

export const linkRefused = (path: string): StartError =>
  new StartError(
    `${path}: is a link or a special file. A backup has files and directories alone; it is not copied.`,
  );

/** The same on the way back. What is there already must be the same: another secret would sign nothing the backup knows. */
export async function restorePrivate(from: string, to: string): Promise<boolean> {
  await refuseLink(from);
  const [wanted, there] = await Promise.all([readIfThere(from), readIfThere(to)]);
  if (wanted === null) return false;
  if (there !== null && !there.equals(wanted))
    throw new StartError(`${to}: is there already and differs from the backup's. Move it away.`);
  return copyPrivate(from, to);
}

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function readIfThere(file: string): Promise<Buffer | null> {
  return (await exists(file)) ? readFile(file) : null;
}
