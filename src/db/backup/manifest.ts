import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { StartError } from '../../start-error.ts';
import { refuseLink } from './private-files.ts';

/** Says that a backup is whole: it is written last. */
export const BackupManifest = z.object({
  format: z.literal(1),
  createdTs: z.int(),
  postgresqlMajor: z.string(),
  files: z.int(),
  bytes: z.int(),
});
export type BackupManifest = z.infer<typeof BackupManifest>;

/** In a backup's directory: the cluster, and the private files of the data directory. */
export const clusterName = 'postgresql';
export const privateNames = ['secret', 'database-password'] as const;

const name = 'backup.json';

export async function writeManifest(dir: string, manifest: BackupManifest): Promise<void> {
  await writeFile(join(dir, name), `${JSON.stringify(manifest, null, 2)}\n`, { flush: true });
}

/** Throws a StartError for what is no backup, or one that was interrupted. */
export async function readManifest(dir: string): Promise<BackupManifest> {
  await refuseLink(join(dir, name));
  try {
    return BackupManifest.parse(JSON.parse(await readFile(join(dir, name), 'utf8')));
  } catch (error) {
    throw new StartError(`${dir}: is not a whole backup (no readable ${name}).`, { cause: error });
  }
}
