import { readdir, readFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A migration of this program. */
export type KnownMigration = {
  name: string;
  /** The least version of a program that can write to the database once it has run. */
  leastWriter: string;
};

/** The directory of this program's migrations. */
export const migrationsDir = fileURLToPath(new URL('./migrations/', import.meta.url));

/** Each file says it in its first line: `-- Least writer: 0.2.0`. */
const header = /^(?:--|\/\/) Least writer: (\d+\.\d+\.\d+)$/m;

/** The migrations of a directory, in their order. Throws where one does not say who may go on writing. */
export async function listMigrations(dir: string): Promise<KnownMigration[]> {
  const files = (await readdir(dir)).filter((file) => /\.(sql|ts)$/.test(file)).sort();
  return Promise.all(
    files.map(async (file) => {
      const [first = ''] = (await readFile(join(dir, file), 'utf8')).split('\n', 1);
      const leastWriter = header.exec(first)?.[1];
      if (leastWriter === undefined)
        throw new Error(`${file}: expected "-- Least writer: <version>" as its first line.`);
      return { name: basename(file, extname(file)), leastWriter };
    }),
  );
}
