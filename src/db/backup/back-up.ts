import { mkdir, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '../../start-error.ts';
import { connectionStringOf } from '../embedded/address.ts';
import { findPostmaster } from '../embedded/postmaster.ts';
import { readSuperuser } from '../embedded/secrets.ts';
import { type Copied, copyFiles, copyLog } from './backup.ts';
import { copyRunning } from './copy-running.ts';
import { makeBackup } from './make-backup.ts';
import { clusterName, privateNames, writeManifest, type BackupManifest } from './manifest.ts';
import { copyPrivate } from './private-files.ts';

/**
 * Copies the embedded database of a data directory into a new directory, with the secret and the
 * database's password: whoever has it has everything. The service may run and write meanwhile.
 */
export async function backUp(dataDir: string, targetDir: string): Promise<BackupManifest> {
  const clusterDir = await realpath(join(dataDir, clusterName)).catch((cause: unknown) => {
    throw new StartError(`DATA_DIR ${dataDir}: holds no database.`, { cause });
  });
  return makeBackup(targetDir, async (dir) => {
    for (const file of privateNames) await copyPrivate(join(dataDir, file), join(dir, file));
    const { files, bytes } = await copyCluster(dataDir, clusterDir, join(dir, clusterName));
    const manifest: BackupManifest = {
      format: 1,
      // oxlint-disable-next-line no-restricted-globals -- a command: when the copy was made
      createdTs: Date.now(),
      postgresqlMajor: (await readFile(join(clusterDir, 'PG_VERSION'), 'utf8')).trim(),
      files,
      bytes,
    };
    await writeManifest(dir, manifest);
    return manifest;
  });
}

async function copyCluster(dataDir: string, clusterDir: string, to: string): Promise<Copied> {
  await mkdir(to, { mode: 0o700 });
  const running = await findPostmaster(clusterDir);
  if (running) {
    const superuser = await readSuperuser(dataDir);
    return copyRunning(connectionStringOf(running.address, superuser, 'postgres'), clusterDir, to);
  }
  const state = () => readFile(join(clusterDir, 'global', 'pg_control'));
  const before = await state();
  const files = await copyFiles(clusterDir, to);
  const log = await copyLog(clusterDir, to);
  if ((await findPostmaster(clusterDir)) !== null || !before.equals(await state()))
    throw new StartError('The service was started while its database was copied: try again.');
  return { files: files.files + log.files, bytes: files.bytes + log.bytes };
}
