// Runs as a program of its own, so that the bundler's memory is freed when it ends.
import { mkdir, stat } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { manifestName } from '../manifest.ts';
import { hashSources, projectDir } from './sources.ts';
import { isOwnDir, writeBuild } from './write.ts';

/** Where an image, and the tests, build it beforehand. As trustworthy as the packages beside it. */
const prebuiltDir = join(projectDir, 'node_modules/.cache/console');

// The service and its database start at the same time.
setPriority(5);
const { values } = parseArgs({ options: { dir: { type: 'string' } } });
process.stdout.write(await findOrBuild(values.dir ?? prebuiltDir));

/** The folder with the page built from these sources; builds it into `dir` if there is none. */
async function findOrBuild(dir: string): Promise<string> {
  const hash = await hashSources();
  const places = [prebuiltDir, ...((await isOwnDir(dir)) ? [dir] : [])];
  for (const place of places) {
    const built = join(place, hash);
    if (await stat(join(built, manifestName)).catch(() => null)) return built;
  }
  // In an image, the user who reads it is not the one who built it.
  const mode = dir === prebuiltDir ? 0o755 : 0o700;
  await mkdir(dir, { recursive: true, mode });
  if (!(await isOwnDir(dir))) throw new Error(`Other users can write to ${dir}.`);
  const { bundle } = await import('./bundle.ts');
  return writeBuild({ dir, hash, mode }, await bundle());
}
