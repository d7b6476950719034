// Run as a program of its own: what the bundler takes is given back when it ends.
import { mkdir, stat } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { manifestName } from '../manifest.ts';
import { hashSources, projectDir } from './sources.ts';
import { isOwnDir, writeBuild } from './write.ts';

/** Where an image, and the tests, have it built already. As trusted as the packages beside it. */
const prebuiltDir = join(projectDir, 'node_modules/.cache/console');

// The service and its database start meanwhile.
setPriority(5);
const { values } = parseArgs({ options: { dir: { type: 'string' } } });
process.stdout.write(await findOrBuild(values.dir ?? prebuiltDir));

/** The folder with the page built of these sources; builds it into `dir` where there is none. */
async function findOrBuild(dir: string): Promise<string> {
  const hash = await hashSources();
  const places = [prebuiltDir, ...((await isOwnDir(dir)) ? [dir] : [])];
  for (const place of places) {
    const built = join(place, hash);
    if (await stat(join(built, manifestName)).catch(() => null)) return built;
  }
  // In an image another user reads it than the one that built it.
  const mode = dir === prebuiltDir ? 0o755 : 0o700;
  await mkdir(dir, { recursive: true, mode });
  if (!(await isOwnDir(dir))) throw new Error(`Other users can write to ${dir}.`);
  const { bundle } = await import('./bundle.ts');
  return writeBuild({ dir, hash, mode }, await bundle());
}
