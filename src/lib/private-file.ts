import { link, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from './thrown.ts';

/**
 * Reads a file that only its owner may read, or makes it of what `make` gives. Of several processes
 * that make it at once one wins, and all read the same. Once this resolves it outlasts a power cut.
 */
export async function readOrMakePrivateFile(file: string, make: () => string): Promise<string> {
  const found = await readPrivateFile(file);
  if (found !== null) return found;
  const made = `${file}.${process.pid}`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(made, `${make()}\n`, { mode: 0o600, flush: true });
  await link(made, file).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
  await rm(made);
  await syncDirectory(dirname(file));
  return (await readFile(file, 'utf8')).trim();
}

/** What such a file holds, or null where there is none. */
export async function readPrivateFile(file: string): Promise<string | null> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/** A file's name is in its directory, and is written out with it (fsync(2)). */
async function syncDirectory(dir: string): Promise<void> {
  // Windows opens no directory, and writes names out by itself.
  if (process.platform === 'win32') return;
  const handle = await open(dir, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
