import { randomBytes } from 'node:crypto';
import { chown, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readOrMakePrivateFile, readPrivateFile } from '../../lib/private-file.ts';
import { StartError } from '../../start-error.ts';
import type { RoleLogin } from './address.ts';
import { superuser } from './cluster.ts';

/** The role that the service works as. It owns what is the service's, and has no other right. */
export const serviceRole = 'sensorium_service';

const superuserFile = 'database-password';
const serviceFile = 'service-password';

/** The superuser's password of a data directory, made for a cluster that is to be made. */
export function readOrMakeSuperuserPassword(dataDir: string): Promise<string> {
  return readOrMakePrivateFile(join(dataDir, superuserFile), makePassword);
}

/** For backups, and to hand over what the service's role does not own yet. Throws a StartError. */
export async function readSuperuser(dataDir: string): Promise<RoleLogin> {
  const file = join(dataDir, superuserFile);
  const password = await readPrivateFile(file).catch((error: unknown) => {
    throw unreadable(file, error);
  });
  if (password === null) throw unreadable(file);
  return { role: superuser, password };
}

/**
 * What the service logs in with. Where its password was lost, `enterAsService` sets the new one.
 * Throws a StartError where it cannot be read.
 */
export async function readOrMakeService(dataDir: string): Promise<RoleLogin> {
  const file = join(dataDir, serviceFile);
  try {
    const password = await readOrMakePrivateFile(file, makePassword);
    await giveToOwner(dataDir, file);
    return { role: serviceRole, password };
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** A command that root runs once must not leave a file that the service's own user cannot read. */
async function giveToOwner(dataDir: string, file: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await stat(join(dataDir, superuserFile)).catch(() => stat(dataDir));
  if ((await stat(file)).uid !== uid) await chown(file, uid, gid);
}

function unreadable(file: string, cause?: unknown): StartError {
  return new StartError(
    `${file}: cannot be read, and without it the database beside it does not open.`,
    { cause },
  );
}

/** The same, or null where it has never been made. */
export async function findService(dataDir: string): Promise<RoleLogin | null> {
  const password = await readPrivateFile(join(dataDir, serviceFile));
  return password === null ? null : { role: serviceRole, password };
}

function makePassword(): string {
  return randomBytes(24).toString('hex');
}
