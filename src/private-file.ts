import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Reads a file that only its owner may read, or makes it of what `make` gives. Of several processes
 * that make it at once one wins, and all read the same.
 */
export async function readOrMakePrivateFile(file: string, make: () => string): Promise<string> {
  const found = await readIfThere(file);
  if (found !== null) return found;
  const made = `${file}.${process.pid}`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(made, `${make()}\n`, { mode: 0o600, flush: true });
  await link(made, file).catch((error: unknown) => {
    if (!hasCode(error, 'EEXIST')) throw error;
  });
  await rm(made);
  return (await readFile(file, 'utf8')).trim();
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
