import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { StartError } from '../../start-error.ts';
import { refuseLink } from '../backup/private-files.ts';

/** A table's rows, in a file of its own: COPY's text format, compressed with zstd. */
export const CopiedTable = z.object({
  name: z.string(),
  columns: z.array(z.string()),
  file: z.string().regex(/^[\w-]+\.copy\.zst$/),
  rows: z.int(),
  /** Of the file, as it lies there. */
  bytes: z.int(),
  sha256: z.string(),
});
export type CopiedTable = z.infer<typeof CopiedTable>;

/** Says that a portable copy is whole, and what can read it: it is written last. */
export const PortableManifest = z.object({
  format: z.literal(1),
  createdTs: z.int(),
  programVersion: z.string(),
  /** Where it came from; nothing depends on it. */
  source: z.string(),
  /** The names of those that had run, in their order. */
  migrations: z.array(z.string()).min(1),
  /** In an order in which no row refers to one that comes later. */
  tables: z.array(CopiedTable),
  /** The number each has given last, as text: it may exceed what a double holds. */
  sequences: z.array(z.object({ name: z.string(), value: z.string() })),
});
export type PortableManifest = z.infer<typeof PortableManifest>;

const name = 'portable.json';

export async function writePortableManifest(
  dir: string,
  manifest: PortableManifest,
): Promise<void> {
  await writeFile(join(dir, name), `${JSON.stringify(manifest, null, 2)}\n`, {
    mode: 0o600,
    flush: true,
  });
}

/** Null for a directory that holds none; throws a StartError for one that cannot be read. */
export async function findPortableManifest(dir: string): Promise<PortableManifest | null> {
  const file = join(dir, name);
  await refuseLink(file);
  if (!(await stat(file).catch(() => null))) return null;
  try {
    return PortableManifest.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    throw new StartError(
      `${file}: is damaged, or was written by a later version of this program.`,
      { cause: error },
    );
  }
}
