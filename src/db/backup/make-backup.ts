import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StartError } from '../../start-error.ts';
import { exists } from './private-files.ts';

/**
 * Has `fill` fill a new directory that nobody else can read, under another name first: what was
 * interrupted is never taken for a backup.
 */
export async function makeBackup<T>(
  targetDir: string,
  fill: (dir: string) => Promise<T>,
): Promise<T> {
  if (await exists(targetDir))
    throw new StartError(`${targetDir}: is there already; a backup gets a directory of its own.`);
  const unfinished = `${targetDir}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(dirname(targetDir), { recursive: true });
  await mkdir(unfinished, { mode: 0o700 });
  try {
    const result = await fill(unfinished);
    await rename(unfinished, targetDir);
    return result;
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}
