import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import pg from 'pg';
import { to } from 'pg-copy-streams';
import { z } from 'zod';
import { StartError } from '../../start-error.ts';
import { version } from '../../version.ts';
import { copyPrivate, makeBackup, refuseLink } from '../backup/backup.ts';
import { breakOff } from '../pg-driver.ts';
import { listKnownMigrations, refuseEarlier } from '../baseline.ts';
import { findCurrentSchema, readSchemaState } from '../schema-state.ts';
import { optionsOf, sessionFormats, type Sql } from '../sql.ts';
import { describeStorage, readStorage } from '../storage.ts';

/**
 * Writes a portable copy of a database into a new directory: a file per table, the secret of the data directory (if it
 * has one), and a manifest. `hasSecret` tells whether the copy contains the secret; whoever has it can read everything.
 */
export async function backUpPortable(
  { connectionString, dataDir }: { connectionString: string; dataDir: string },
  targetDir: string,
  options: CopyOptions = {},
): Promise<{ manifest: PortableManifest; hasSecret: boolean }> {
  return makeBackup(targetDir, async (dir) => {
    const hasSecret = await copyPrivate(join(dataDir, 'secret'), join(dir, 'secret'));
    return { manifest: await writeTables(connectionString, dir, options), hasSecret };
  });
}

export type CopyOptions = {
  /** Called after each piece. */
  onRows?: OnRows;
  /** Called with the step that begins once all rows are loaded, which may take a while. */
  onStep?: (step: string) => void;
  signal?: AbortSignal;
};

/**
 * Writes all rows of a database, as of one moment, into an empty directory. Others may go on writing; until the copy is
 * complete, the server keeps the row versions that they replace. Throws a StartError for a database that this program
 * did not create, or that a later version has migrated.
 */
async function writeTables(
  connectionString: string,
  dir: string,
  { onRows = () => undefined, signal }: CopyOptions = {},
): Promise<PortableManifest> {
  return withSession(connectionString, async (client) => {
    const { applied } = await readSchemaState(client);
    if (applied.length === 0)
      throw new StartError('The database has no tables of Sensorium: there is nothing to copy.');
    refuseEarlier({ applied });
    await findTables(client);
    await client.query('begin isolation level repeatable read read only');
    // oxlint-disable-next-line no-restricted-globals -- a command: when the copy was made
    const createdTs = Date.now();
    const migrations = await listRunMigrations(client);
    await requireKnownMigrations(migrations, {
      of: 'The database',
      hint: 'Copy it with the version that runs on it.',
    });
    const found = await listTables(client);
    const expected = await estimateRows(client, found);
    const tables: CopiedTable[] = [];
    let before = 0;
    for (const table of found) {
      const tell = (rows: number) => onRows({ table: table.name, rows: before + rows, expected });
      const copied = await writeTable(client, table, dir, tell, signal);
      before += copied.rows;
      tables.push(copied);
    }
    const manifest: PortableManifest = {
      format: 1,
      createdTs,
      programVersion: version,
      source: describeStorage(await readStorage(client)),
      migrations,
      tables,
      // Sequences belong to no transaction. Read now, each is at least as far as any copied row.
      sequences: await listSequences(client),
    };
    await client.query('commit');
    await writePortableManifest(dir, manifest);
    return manifest;
  });
}

/** Copies through a select, because COPY of a hypertable itself copies nothing: its rows are in its chunks. */
async function writeTable(
  client: pg.Client,
  { name, columns }: Table,
  dir: string,
  onRows: (rows: number) => void,
  signal: AbortSignal | undefined,
): Promise<CopiedTable> {
  const chosen = columns.map((column) => {
    const instead = replaced[name]?.[column];
    return `${instead === undefined ? '' : `${instead} as `}${pg.escapeIdentifier(column)}`;
  });
  const rows = countRows(onRows);
  const hash = createHash('sha256');
  const file = `${name}.copy.zst`;
  await pipeline(
    client.query(
      to(`copy (select ${chosen.join(', ')} from ${pg.escapeIdentifier(name)}) to stdout`),
    ),
    rows.pass,
    createZstdCompress(),
    async function* (pieces: AsyncIterable<Buffer>) {
      for await (const piece of pieces) {
        hash.update(piece);
        yield piece;
      }
    },
    createWriteStream(join(dir, file), { mode: 0o600, flush: true }),
    { signal },
  );
  const { size: bytes } = await stat(join(dir, file));
  return { name, columns, file, rows: rows.count(), bytes, sha256: hash.digest('hex') };
}

const settings = {
  statement_timeout: 0,
  lock_timeout: 0,
  idle_in_transaction_session_timeout: 0,
  ...sessionFormats,
};

/** Opens a connection for as long as `work` takes. */
export async function withSession<T>(
  connectionString: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    connectionString,
    application_name: 'sensorium portable copy',
    options: optionsOf(settings),
  });
  // A lost connection fails the statement under way. Without a listener it would end the process too.
  client.on('error', () => undefined);
  await client.connect();
  try {
    const result = await work(client);
    await client.end();
    return result;
  } catch (error) {
    breakOff(client);
    throw error;
  }
}

/** Sets a session's search path to the tables, whichever version created them. */
export async function findTables(sql: Sql): Promise<void> {
  const schema = await findCurrentSchema(sql);
  if (schema === null) throw new Error('The database does not say where its tables are.');
  await sql.query(`set search_path to ${pg.escapeIdentifier(schema.name)}, public`);
}

/** The names of the migrations that ran on a database; empty if none did. */
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
 * Throws unless this program can create the same tables as `of` has, that is, unless its own list of migrations begins
 * with this one. `hint` says what else can.
 */
export async function requireKnownMigrations(
  migrations: readonly string[],
  { of, hint }: { of: string; hint: string },
): Promise<void> {
  const known = await listKnownMigrations();
  const stranger = migrations.find((name, i) => name !== known[i]?.name);
  if (stranger !== undefined)
    throw new StartError(
      `${of}: has the migration ${stranger}, which this version does not know. ${hint}`,
    );
}

/** A table of this program in the database. */
type Table = { name: string; columns: string[]; parents: string[] };

/** Tables that a portable copy omits, and why. It contains all others. */
const leftOut: Record<string, string> = {
  migration: 'the program that restores creates the tables itself and records which steps it ran',
  sensorium_schema: 'records where the tables are: the program that restores places them itself',
  delivering_process: 'records which processes deliver messages now, and through which channels',
  unfinished_restore: 'marks a database into which a portable copy is being restored',
};

/** Values written instead of a column's own: no device is connected to a copied database. */
const replaced: Record<string, Record<string, string>> = {
  presence: { connected: 'false' },
};

/**
 * The tables to copy, each after those that it refers to. They are read from the catalog, so tables and columns of
 * later migrations are included. Omitted are computed columns and transaction IDs: on another server those would name
 * other transactions, or future ones. Such columns get the ID of the restoring transaction.
 */
export async function listTables(sql: Sql): Promise<Table[]> {
  const { rows } = await sql.query<Table>(
    `select c.relname as name,
            array(select a.attname::text
                    from pg_attribute a
                   where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                     and a.attgenerated = '' and a.atttypid <> 'xid8'::regtype
                   order by a.attnum) as columns,
            array(select p.relname::text
                    from pg_constraint k
                    join pg_class p on p.oid = k.confrelid
                   where k.conrelid = c.oid and k.contype = 'f' and k.confrelid <> c.oid) as parents
       from pg_class c
       join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = current_schema() and c.relkind in ('r', 'p') and not c.relispartition
        and not exists (select from pg_depend d
                         where d.classid = 'pg_class'::regclass and d.objid = c.oid
                           and d.deptype = 'e')
      order by c.relname`,
  );
  return parentsFirst(rows.filter(({ name }) => !Object.hasOwn(leftOut, name)));
}

function parentsFirst(tables: Table[]): Table[] {
  const sorted: Table[] = [];
  let waiting = tables;
  while (waiting.length > 0) {
    const open = new Set(waiting.map(({ name }) => name));
    const ready = waiting.filter(({ parents }) => !parents.some((parent) => open.has(parent)));
    if (ready.length === 0)
      throw new Error(`These tables refer to each other in a circle: ${[...open].join(', ')}.`);
    sorted.push(...ready);
    waiting = waiting.filter((table) => !ready.includes(table));
  }
  return sorted;
}

/** The approximate number of rows of all tables together, as of the last analyze. */
async function estimateRows(sql: Sql, tables: readonly Table[]): Promise<number> {
  const names = tables.map(({ name }) => name);
  const { rows: found } = await sql.query<{ found: boolean }>(
    `select to_regproc('approximate_row_count') is not null as found`,
  );
  // A hypertable itself has no such count, and the rows of compressed chunks are counted elsewhere.
  const count = found[0]?.found ? 'approximate_row_count(c.oid::regclass)' : 'c.reltuples';
  const { rows } = await sql.query<{ total: number }>(
    `select coalesce(sum(greatest(${count}, 0)), 0)::float8 as total
       from pg_class c
       join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = current_schema() and c.relname = any($1::text[])`,
    [names],
  );
  return rows[0]?.total ?? 0;
}

/** The sequences that have been used, with their last number. After `setSequences` no number is used twice. */
async function listSequences(sql: Sql): Promise<{ name: string; value: string }[]> {
  const { rows } = await sql.query<{ name: string; value: string }>(
    `select sequencename as name, last_value::text as value
       from pg_sequences
      where schemaname = current_schema() and last_value is not null
      order by sequencename`,
  );
  return rows;
}

/** Skips sequences that do not exist here, such as those of `leftOut` tables. */
export async function setSequences(
  sql: Sql,
  sequences: readonly { name: string; value: string }[],
): Promise<void> {
  await sql.query(
    `select setval(format('%I.%I', s.schemaname, s.sequencename)::regclass, g.value)
       from unnest($1::text[], $2::bigint[]) as g (name, value)
       join pg_sequences s on s.schemaname = current_schema() and s.sequencename = g.name`,
    [sequences.map(({ name }) => name), sequences.map(({ value }) => value)],
  );
}

/** The file with a table's rows: COPY's text format, compressed with zstd. */
export const CopiedTable = z.object({
  name: z.string(),
  columns: z.array(z.string()),
  file: z.string().regex(/^[\w-]+\.copy\.zst$/),
  rows: z.int(),
  /** Size of the compressed file. */
  bytes: z.int(),
  sha256: z.string(),
});
export type CopiedTable = z.infer<typeof CopiedTable>;

/** Marks a portable copy as complete, and says what can read it. It is written last. */
export const PortableManifest = z.object({
  format: z.literal(1),
  createdTs: z.int(),
  programVersion: z.string(),
  /** Where the copy comes from; nothing depends on it. */
  source: z.string(),
  /** The names of the migrations that had run, in order. */
  migrations: z.array(z.string()).min(1),
  /** Ordered so that no row refers to a later one. */
  tables: z.array(CopiedTable),
  /** The last number of each, as text, because it may exceed the integers of a double. */
  sequences: z.array(z.object({ name: z.string(), value: z.string() })),
});
export type PortableManifest = z.infer<typeof PortableManifest>;

const name = 'portable.json';

async function writePortableManifest(dir: string, manifest: PortableManifest): Promise<void> {
  await writeFile(join(dir, name), `${JSON.stringify(manifest, null, 2)}\n`, {
    mode: 0o600,
    flush: true,
  });
}

/** Null if the directory has none. Throws a StartError for one that cannot be read. */
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

/** Progress of a copy: rows of all tables together, and the approximate total (0: unknown). */
export type OnRows = (copied: { table: string; rows: number; expected: number }) => void;

const newline = 0x0a;

/** Counts the rows that pass, in COPY's text format, where a newline within a row is written as `\n`. */
export function countRows(onRows: (rows: number) => void): {
  pass(pieces: AsyncIterable<Buffer>): AsyncIterable<Buffer>;
  count(): number;
} {
  let rows = 0;
  return {
    async *pass(pieces) {
      for await (const piece of pieces) {
        let at = piece.indexOf(newline);
        for (; at !== -1; at = piece.indexOf(newline, at + 1)) rows += 1;
        onRows(rows);
        yield piece;
      }
    },
    count: () => rows,
  };
}
