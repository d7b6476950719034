import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '../../start-error.ts';
import type { Sql } from '../sql.ts';

/** A table that exists for as long as a database is incomplete; see `refuseUnfinished`. */
const markerTable = 'public.unfinished_restore';

/** Throws for a database whose restore was interrupted: it would look as if it had lost its rows. */
export async function refuseUnfinished(sql: Sql): Promise<void> {
  if (await isUnfinished(sql))
    throw new StartError(
      'The database is incomplete: a portable copy is being restored into it, or the restore ' +
        'was interrupted. Let it finish, or run `npm run restore` again.',
    );
}

/**
 * Marks an empty database as being restored, or takes over one that is already marked. Throws a StartError for any
 * other: rows are never added to existing ones.
 */
export async function markUnfinished(sql: Sql): Promise<void> {
  if (await isUnfinished(sql)) return;
  const { rows } = await sql.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name
       from pg_class c
       join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
        and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
        and n.nspname not like 'pg_temp%'
        and not exists (select from pg_depend d
                         where d.classid = 'pg_class'::regclass and d.objid = c.oid
                           and d.deptype = 'e')
      order by 1
      limit 1`,
  );
  if (rows[0])
    throw new StartError(
      `DATABASE_URL: the database is not empty (it contains ${rows[0].name}). Restore a ` +
        'portable copy into a new one: create it with `create database`.',
    );
  await sql.query(`create table ${markerTable} ()`);
}

export async function unmarkUnfinished(sql: Sql): Promise<void> {
  await sql.query(`drop table ${markerTable}`);
}

async function isUnfinished(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ found: boolean }>(
    'select to_regclass($1) is not null as found',
    [markerTable],
  );
  return rows[0]?.found === true;
}

/**
 * A file that exists in a data directory while a portable copy is being restored into it. It contains the cluster's
 * path.
 */
const markerFile = 'unfinished-restore';

/** Throws for a data directory whose restore is unfinished: a start would create an empty database. */
export async function refuseUnfinishedDir(dataDir: string): Promise<void> {
  if ((await findUnfinishedCluster(dataDir)) !== null)
    throw new StartError(
      `DATA_DIR ${dataDir}: a portable copy is being restored into it, or the restore was ` +
        'interrupted. Let it finish, or run `npm run restore` again.',
    );
}

/** The cluster directory of an unfinished restore; null if there is none. */
export async function findUnfinishedCluster(dataDir: string): Promise<string | null> {
  return readFile(join(dataDir, markerFile), 'utf8').then(
    (text) => text.trim(),
    () => null,
  );
}

export async function markUnfinishedDir(dataDir: string, clusterDir: string): Promise<void> {
  await writeFile(join(dataDir, markerFile), `${clusterDir}\n`, { flush: true });
}

export async function unmarkUnfinishedDir(dataDir: string): Promise<void> {
  await rm(join(dataDir, markerFile), { force: true });
}
