import { StartError } from '../../start-error.ts';
import { listMigrations, migrationsDir } from '../known-migrations.ts';
import type { Sql } from '../sql.ts';

/** The names of this program's migrations, in the order in which they run. */
async function listKnownMigrations(): Promise<string[]> {
  return (await listMigrations(migrationsDir)).map(({ name }) => name);
}

/** The names of those that ran on a database; empty for one that none ran on. */
export async function listRunMigrations(sql: Sql): Promise<string[]> {
  const { rows: found } = await sql.query<{ found: boolean }>(
    `select to_regclass('public.migration') is not null as found`,
  );
  if (!found[0]?.found) return [];
  const { rows } = await sql.query<{ name: string }>(
    'select name from public.migration order by id',
  );
  return rows.map(({ name }) => name);
}

/**
 * Throws unless this program can make the tables just as they are in `of`: its own list of migrations
 * begins with the other. `hint` says what else can.
 */
export async function requireKnownMigrations(
  migrations: readonly string[],
  { of, hint }: { of: string; hint: string },
): Promise<void> {
  const known = await listKnownMigrations();
  const stranger = migrations.find((name, i) => name !== known[i]);
  if (stranger !== undefined)
    throw new StartError(
      `${of}: has the migration ${stranger}, which this version does not know. ${hint}`,
    );
}
