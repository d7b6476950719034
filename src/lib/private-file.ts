import { link, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from './thrown.ts';

/**
 * Reads a file that only its owner may read, or creates it with the text from `make`. If several processes create it at
 * once, one wins, and all read the same. Once this resolves, the file survives a power cut.
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

/** The text of a private file; null if it does not exist. */
export async function readPrivateFile(file: string): Promise<string | null> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/** A file's name is stored in its directory, which has to be synced too (fsync(2)). */
async function syncDirectory(dir: string): Promise<void> {
  // Windows cannot open a directory, and writes names by itself.
  if (process.platform === 'win32') return;
  const handle = await open(dir, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
