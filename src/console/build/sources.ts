import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where the page's sources are. */
export const webDir = fileURLToPath(new URL('../web', import.meta.url));
const buildDir = fileURLToPath(new URL('.', import.meta.url));
export const projectDir = fileURLToPath(new URL('../../..', import.meta.url));

/** Lists the files below `dir`, sorted, as paths relative to it. */
async function listFiles(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => join(parentPath, name)).sort();
}

/**
 * Names what a build is made of: the sources, how they are built, and the versions of the packages. Two
 * builds of one hash are the same.
 */
export async function hashSources(): Promise<string> {
  const hash = createHash('sha256');
  const files = [...(await listFiles(webDir)), ...(await listFiles(buildDir))];
  // The image has no lockfile: package.json names exact versions.
  for (const file of [...files, join(projectDir, 'package.json')]) {
    hash.update(file.slice(projectDir.length)).update('\0');
    hash.update(await readFile(file)).update('\0');
  }
  return hash.digest('hex').slice(0, 20);
}
