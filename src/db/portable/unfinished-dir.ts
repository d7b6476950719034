import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '../../start-error.ts';

/** In a data directory for as long as a portable copy is being restored into it; says where. */
const marker = 'unfinished-restore';

/** Throws for a data directory whose database a restore has not finished: a start would make an empty one. */
export async function refuseUnfinishedDir(dataDir: string): Promise<void> {
  if ((await findUnfinishedCluster(dataDir)) !== null)
    throw new StartError(
      `DATA_DIR ${dataDir}: a portable copy is being restored into it, or was interrupted. Let it end, or run \`npm run restore\` again.`,
    );
}

/** Where an unfinished restore was making its cluster; null where there is none. */
export async function findUnfinishedCluster(dataDir: string): Promise<string | null> {
  return readFile(join(dataDir, marker), 'utf8').then(
    (text) => text.trim(),
    () => null,
  );
}

export async function markUnfinishedDir(dataDir: string, clusterDir: string): Promise<void> {
  await writeFile(join(dataDir, marker), `${clusterDir}\n`, { flush: true });
}

export async function unmarkUnfinishedDir(dataDir: string): Promise<void> {
  await rm(join(dataDir, marker), { force: true });
}
