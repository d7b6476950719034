import { join } from 'node:path';
import { makeBackup } from '../backup/make-backup.ts';
import { copyPrivate } from '../backup/private-files.ts';
import type { PortableManifest } from './manifest.ts';
import { writeTables, type CopyOptions } from './write-copy.ts';

/**
 * Writes a portable copy of a database into a new directory: each table in a file, the secret of the
 * data directory (where it has one), and a manifest. `hasSecret` says whether that is in it: whoever
 * has it has everything.
 */
export async function backUpPortable(
  { connectionString, dataDir }: { connectionString: string; dataDir: string },
  targetDir: string,
  options: CopyOptions = {},
): Promise<{ manifest: PortableManifest; hasSecret: boolean }> {
  return makeBackup(targetDir, async (dir) => {
    const hasSecret = await copyPrivate(join(dataDir, 'secret'), join(dir, 'secret'));
    return { manifest: await writeTables(connectionString, dir, options), hasSecret };
  });
}
