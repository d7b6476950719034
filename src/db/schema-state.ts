import type { Sql } from './sql.ts';

/** A migration that has run, as recorded in the database; null where a version before 0.2.0 recorded it. */
export type AppliedMigration = {
  name: string;
  programVersion: string | null;
  leastWriter: string | null;
};

/** Where the tables are, and who may write there. */
export type CurrentSchema = {
  name: string;
  /** Programs before this version find no table by the name they know. */
  leastWriter: string;
  /** The version of the program that moved the tables here. */
  changedBy: string;
};

export type SchemaState = {
  applied: AppliedMigration[];
  /** Null before the first start, and where the tables are as 0.1.0 left them: in `public`. */
  schema: CurrentSchema | null;
};

/** These two tables are where every version looks for them. */
export const migrationTable = { schema: 'public', name: 'migration' };

/** What has been done to the database so far. */
export async function readSchemaState(sql: Sql): Promise<SchemaState> {
  return { applied: await listApplied(sql), schema: await findCurrentSchema(sql) };
}

/** Where the tables are now; null where no program since 0.2.0 has been here. */
export async function findCurrentSchema(sql: Sql): Promise<CurrentSchema | null> {
  if (!(await exists(sql, 'public.sensorium_schema'))) return null;
  const { rows } = await sql.query<CurrentSchema>(
    `select name, least_writer as "leastWriter", changed_by as "changedBy"
       from public.sensorium_schema`,
  );
  return rows[0] ?? null;
}

/** Makes the two tables, or adds what an earlier version's lack. */
export async function ensureStateTables(sql: Sql): Promise<void> {
  await sql.query(
    `create table if not exists public.migration (
       id serial primary key,
       name varchar(255) not null,
       run_on timestamp not null
     )`,
  );
  // Existing rows stay empty here: which version made them is not known.
  await sql.query(
    `alter table public.migration
       add column if not exists program_version text,
       add column if not exists least_writer text`,
  );
  // What runs the migrations adds a row of its own: these come along with it, in its transaction.
  await sql.query(
    `alter table public.migration
       alter column program_version
         set default nullif(current_setting('sensorium.program_version', true), ''),
       alter column least_writer
         set default nullif(current_setting('sensorium.least_writer', true), '')`,
  );
  await sql.query(
    `create table if not exists public.sensorium_schema (
       only_row boolean primary key default true check (only_row),
       name text not null,
       least_writer text not null,
       changed_by text not null,
       changed_at timestamptz not null default now()
     )`,
  );
}

export async function saveCurrentSchema(
  sql: Sql,
  { name, leastWriter, changedBy }: CurrentSchema,
): Promise<void> {
  await sql.query(
    `insert into public.sensorium_schema (name, least_writer, changed_by)
     values ($1, $2, $3)
     on conflict (only_row) do update
       set name = excluded.name,
           least_writer = excluded.least_writer,
           changed_by = excluded.changed_by,
           changed_at = now()`,
    [name, leastWriter, changedBy],
  );
}

async function listApplied(sql: Sql): Promise<AppliedMigration[]> {
  if (!(await exists(sql, 'public.migration'))) return [];
  // By way of JSON: the columns that 0.2.0 added may not be there.
  const { rows } = await sql.query<AppliedMigration>(
    `select m.name,
            to_jsonb(m) ->> 'program_version' as "programVersion",
            to_jsonb(m) ->> 'least_writer' as "leastWriter"
       from public.migration m
      order by m.id`,
  );
  return rows;
}

async function exists(sql: Sql, table: string): Promise<boolean> {
  const { rows } = await sql.query<{ found: boolean }>(
    'select to_regclass($1) is not null as found',
    [table],
  );
  return rows[0]?.found === true;
}
