import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { exists, refuseLink, restorePrivate } from '../../db/backup/backup.ts';
import { checkPortableCopy, loadTables, restoreEmbedded } from '../../db/portable/load.ts';
import type { CopyOptions, PortableManifest } from '../../db/portable/write.ts';
import { makeOldMessagesDue } from '../../notifications/old-jobs.ts';
import { StartError } from '../../start-error.ts';
import { consoleLog as log } from '../command-line.ts';

/**
 * Restores a portable copy into the empty database of `databaseUrl`, or into a new embedded one in a data directory
 * that has none. Throws a StartError for a problem that the user can fix.
 */
export async function restorePortableCopy(
  config: Pick<Config, 'databaseUrl' | 'dataDir' | 'secret' | 'previousSecret'>,
  copyDir: string,
  manifest: PortableManifest,
  options: CopyOptions = {},
): Promise<void> {
  await checkPortableCopy(copyDir, manifest);
  await checkSecret(config, copyDir);
  const load = (connectionString: string) =>
    loadTables(connectionString, copyDir, manifest, {
      ...options,
      log,
      complete: makeOldMessagesDue,
    });
  const { databaseUrl, dataDir } = config;
  if (databaseUrl !== null) return load(databaseUrl);
  await restoreEmbedded(dataDir, async (connectionString) => {
    await restorePrivate(join(copyDir, 'secret'), join(dataDir, 'secret'));
    await load(connectionString);
  });
}

/** The secret signs devices' tokens and sessions. With another one they would all be refused. */
async function checkSecret(
  { secret, previousSecret }: Pick<Config, 'secret' | 'previousSecret'>,
  copyDir: string,
): Promise<void> {
  const file = join(copyDir, 'secret');
  if (secret === null || !(await exists(file))) return;
  await refuseLink(file);
  const ofCopy = (await readFile(file, 'utf8')).trim();
  if (ofCopy !== secret && ofCopy !== previousSecret)
    throw new StartError(
      "SECRET: differs from the copy's secret, so no device's token would work. Use the copy's " +
        `secret (SECRET_FILE=${file}) for this command and for the service.`,
    );
}
