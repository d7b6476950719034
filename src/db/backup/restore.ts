import { chown, chmod, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '../../start-error.ts';
import { findCluster, makeCluster } from '../embedded/location.ts';
import { placePrograms } from '../embedded/place-programs.ts';
import { findPackagedPostgres, type SystemUser } from '../embedded/programs.ts';
import { checkVersion } from '../embedded/launch.ts';
import { copyFiles, copyLog } from './backup.ts';
import { clusterName, privateNames, readManifest, type BackupManifest } from './manifest.ts';
import { refuseLink, restorePrivate } from './private-files.ts';

/**
 * Puts a backup into a data directory that has no database yet; the next start of the service
 * recovers it to the moment at which the backup ended. Throws a StartError for what its user can mend.
 */
export async function restore(backupDir: string, dataDir: string): Promise<BackupManifest> {
  const manifest = await readManifest(backupDir);
  const { clusterDir, owner } = await findCluster(dataDir);
  if (clusterDir !== null)
    throw new StartError(
      `DATA_DIR ${dataDir}: holds a database already. Move it away, or choose another DATA_DIR.`,
    );
  const source = join(backupDir, clusterName);
  await refuseLink(source);
  await refuseLink(join(source, 'PG_VERSION'));
  const programs = await placePrograms(findPackagedPostgres(), owner);
  await checkVersion({ programs, clusterDir: source });
  for (const name of privateNames) {
    await restorePrivate(join(backupDir, name), join(dataDir, name));
  }
  await makeCluster(dataDir, owner, async (dir) => {
    const files = await copyFiles(source, dir);
    const log = await copyLog(source, dir);
    if (files.files + log.files !== manifest.files || files.bytes + log.bytes !== manifest.bytes)
      throw new StartError(`${backupDir}: files are missing or cut short; it is not restored.`);
    await giveTo(dir, owner);
  });
  return manifest;
}

async function giveTo(dir: string, owner: SystemUser | null): Promise<void> {
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    await chmod(path, entry.isDirectory() ? 0o700 : 0o600);
    if (owner) await chown(path, owner.uid, owner.gid);
  }
}
