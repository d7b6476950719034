import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the page's sources. */
export const webDir = fileURLToPath(new URL('../web', import.meta.url));
/** With the engine, which the page runs too. */
const sourceDir = fileURLToPath(new URL('../..', import.meta.url));
export const projectDir = fileURLToPath(new URL('../../..', import.meta.url));

/** Lists the files below `dir`, sorted, as paths relative to it. */
async function listFiles(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => join(parentPath, name)).sort();
}

/**
 * A hash of all inputs of a build: the sources, the build program, and the versions of the packages. Two builds with
 * the same hash are the same.
 */
export async function hashSources(): Promise<string> {
  const hash = createHash('sha256');
  const files = await listFiles(sourceDir);
  // The image has no lockfile; package.json names exact versions.
  for (const file of [...files, join(projectDir, 'package.json')]) {
    hash.update(file.slice(projectDir.length)).update('\0');
    hash.update(await readFile(file)).update('\0');
  }
  return hash.digest('hex').slice(0, 20);
}
