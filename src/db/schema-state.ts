import { readdir, readFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StartError } from '../start-error.ts';
import type { Sql } from './sql.ts';

/** A migration that has run, as recorded in the database. A version is null if a program before 0.2.0 recorded it. */
type AppliedMigration = {
  name: string;
  programVersion: string | null;
  leastWriter: string | null;
};

/** Where the tables are, and which versions may write there. */
export type CurrentSchema = {
  name: string;
  /** Programs before this version do not find the tables under the name they know. */
  leastWriter: string;
  /** The version of the program that moved the tables here. */
  changedBy: string;
};

export type SchemaState = {
  applied: AppliedMigration[];
  /** Null before the first start, and if the tables are still in `public`, where 0.1.0 left them. */
  schema: CurrentSchema | null;
};

/** Every version looks for these two tables in the same place. */
export const migrationTable = { schema: 'public', name: 'migration' };

/** The migrations that have run, and where the tables are. */
export async function readSchemaState(sql: Sql): Promise<SchemaState> {
  return { applied: await listApplied(sql), schema: await findCurrentSchema(sql) };
}

/** Where the tables are now; null if no program since 0.2.0 has migrated the database. */
export async function findCurrentSchema(sql: Sql): Promise<CurrentSchema | null> {
  if (!(await exists(sql, 'public.sensorium_schema'))) return null;
  const { rows } = await sql.query<CurrentSchema>(
    `select name, least_writer as "leastWriter", changed_by as "changedBy"
       from public.sensorium_schema`,
  );
  return rows[0] ?? null;
}

/** Creates the two tables if they are missing. */
export async function ensureStateTables(sql: Sql): Promise<void> {
  // One row per migration that ran. The library that runs migrations inserts the row in the migration's transaction.
  // The two defaults supply what it does not know.
  await sql.query(
    `create table if not exists public.migration (
       id serial primary key,
       name varchar(255) not null,
       run_on timestamp not null,
       program_version text
         default nullif(current_setting('sensorium.program_version', true), ''),
       least_writer text
         default nullif(current_setting('sensorium.least_writer', true), '')
     )`,
  );
  // One row: where the tables are, and since which version.
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
  // Read as JSON, because 0.1.0 had no such columns; a database of that version is refused by name.
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

/** Negative if version `a` came before `b`. Both are `major.minor.patch`; anything after a `-` is ignored. */
function compareVersions(a: string, b: string): number {
  const [one, other] = [partsOf(a), partsOf(b)];
  const at = one.findIndex((part, index) => part !== other[index]);
  return at < 0 ? 0 : (one[at] ?? 0) - (other[at] ?? 0);
}

/** The newest of these versions. */
export function newestOf(versions: string[]): string {
  return versions.reduce((a, b) => (compareVersions(a, b) < 0 ? b : a));
}

function partsOf(version: string): number[] {
  const [release = ''] = version.split('-');
  return [0, 1, 2].map((index) => Number(release.split('.')[index] ?? 0));
}

/** A migration of this program. */
export type KnownMigration = {
  name: string;
  /** The lowest version of a program that may write to the database once it has run. */
  leastWriter: string;
};

/** The directory of the migrations after the baseline. */
export const migrationsDir = fileURLToPath(new URL('./migrations/', import.meta.url));

/** The first line of each file: `-- Least writer: 0.2.0`. */
const header = /^(?:--|\/\/) Least writer: (\d+\.\d+\.\d+)$/m;

/** The migrations of a directory in order; those of the baseline have no file. Throws if one lacks its least writer. */
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

/** Whether the schema lets a program of this version write. */
function mayWrite(version: string, { leastWriter }: CurrentSchema): boolean {
  return compareVersions(version, leastWriter) >= 0;
}

/**
 * Throws a StartError if the database has a migration that this program does not know, unless that migration lets this
 * program's version write.
 */
export function refuseForeign(
  { applied, schema }: SchemaState,
  known: KnownMigration[],
  version: string,
): void {
  const names = new Set(known.map(({ name }) => name));
  const foreign = applied.filter(({ name }) => !names.has(name)).filter(isForbidden);
  const [first] = foreign;
  if (first) throw new StartError(describeForeign(first, version));
  // A later version moves the tables before it runs the first migration, and may have been interrupted in between.
  if (schema && !mayWrite(version, schema)) throw new StartError(describeMoved(schema, version));

  function isForbidden({ leastWriter }: AppliedMigration): boolean {
    return leastWriter === null || compareVersions(version, leastWriter) < 0;
  }
}

function describeForeign({ name, programVersion, leastWriter }: AppliedMigration, version: string) {
  const by =
    programVersion === null ? 'a version that was not recorded' : `version ${programVersion}`;
  const wanted = leastWriter ?? programVersion;
  const start = wanted === null ? 'the version that ran it' : `version ${wanted} or later`;
  return [
    `A later Sensorium migrated the database: migration ${name}, run by ${by}, does not allow ` +
      `version ${version} to write.`,
    `Start ${start}, or restore an earlier backup (docs/upgrading.md).`,
  ];
}

/** For a running and a starting program: which versions may use the tables now, and what to do. */
function describeMoved({ leastWriter, changedBy }: CurrentSchema, version: string): string[] {
  return [
    `Sensorium ${changedBy} migrated the database and allows only version ${leastWriter} or ` +
      `later to write; this is ${version}.`,
    `Start version ${leastWriter} or later, or restore an earlier backup (docs/upgrading.md).`,
  ];
}

type SchemaWatchOptions = {
  /** Queried periodically. While it is away, nothing is known. */
  sql: Sql;
  /** The schema in which this program's connections look for tables. */
  schema: string;
  version: string;
  /** Called once: from then on this program can store nothing. The lines are for people. */
  onMoved: (lines: string[]) => void;
  intervalMs?: number;
};

export type SchemaWatch = {
  /** Checks at once, because a table was missing. */
  look(): void;
  stop(): void;
};

/** Detects that a later version has moved the tables and does not let this one write. */
export function watchSchema(options: SchemaWatchOptions): SchemaWatch {
  const { sql, schema, version, onMoved, intervalMs = 5_000 } = options;
  let isLooking = false;
  let isOver = false;
  const timer = setInterval(look, intervalMs).unref();

  function look(): void {
    if (isLooking || isOver) return;
    isLooking = true;
    findCurrentSchema(sql)
      .then((current) => {
        if (isOver || current === null || current.name === schema) return;
        if (mayWrite(version, current)) return;
        stop();
        onMoved(describeMoved(current, version));
      })
      .catch(() => undefined)
      .finally(() => (isLooking = false));
  }

  function stop(): void {
    isOver = true;
    clearInterval(timer);
  }

  return { look, stop };
}
