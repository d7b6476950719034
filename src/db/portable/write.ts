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
 * Writes a portable copy of a database into a new directory: each table in a file, the secret of the
 * data directory (where it has one), and a manifest. `hasSecret` says whether that is in it: whoever
 * has it has everything.
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
  /** Told what is done when all rows are there; it may take a while. */
  onStep?: (step: string) => void;
  signal?: AbortSignal;
};

/**
 * Writes all rows of a database into an empty directory, as they are at one moment, while others go on
 * writing. The server keeps for that long what they replace. Throws a StartError for a database that
 * this program has not made, or a later version of it.
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
      // They belong to no transaction: read now, each is at least as far as any row that was copied.
      sequences: await listSequences(client),
    };
    await client.query('commit');
    await writePortableManifest(dir, manifest);
    return manifest;
  });
}

/** A hypertable's own COPY would copy nothing: its rows are in its chunks, which a select reads. */
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

/** A connection of its own for as long as `work` takes. */
export async function withSession<T>(
  connectionString: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    connectionString,
    application_name: 'sensorium portable copy',
    options: optionsOf(settings),
  });
  // A lost connection fails the statement under way; without a listener it would end the process too.
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

/** Has a session find the tables, whichever version made them. */
export async function findTables(sql: Sql): Promise<void> {
  const schema = await findCurrentSchema(sql);
  if (schema === null) throw new Error('The database does not say where its tables are.');
  await sql.query(`set search_path to ${pg.escapeIdentifier(schema.name)}, public`);
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
  const stranger = migrations.find((name, i) => name !== known[i]?.name);
  if (stranger !== undefined)
    throw new StartError(
      `${of}: has the migration ${stranger}, which this version does not know. ${hint}`,
    );
}

/** A table of this program as it stands in the database. */
type Table = { name: string; columns: string[]; parents: string[] };

/** Tables that a portable copy goes without, and why; all others are in it. */
export const leftOut: Record<string, string> = {
  migration: 'the program that restores creates the tables itself and records which steps it ran',
  sensorium_schema: 'records where the tables are: the program that restores places them itself',
  delivering_process: 'records which processes deliver messages now, and through which channels',
  unfinished_restore: 'marks a database into which a portable copy is being restored',
};

/** What is written in place of a column's value: no device is connected to a database that was copied. */
const replaced: Record<string, Record<string, string>> = {
  presence: { connected: 'false' },
};

/**
 * The tables to copy, each behind those it refers to. They are read from the catalog, so what a later
 * migration adds comes along. Left out are columns that are computed from others, and numbers of
 * transactions: on another server they would name other transactions, or some that are still to come.
 * Those columns get the number of the transaction that restores.
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

/** About how many rows all of them have together: what the last analyze saw. */
async function estimateRows(sql: Sql, tables: readonly Table[]): Promise<number> {
  const names = tables.map(({ name }) => name);
  const { rows: found } = await sql.query<{ found: boolean }>(
    `select to_regproc('approximate_row_count') is not null as found`,
  );
  // A hypertable has none itself, and those of compressed chunks are counted elsewhere.
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

/** The sequences that have given a number yet, with the last one; none is given twice after `setSequences`. */
async function listSequences(sql: Sql): Promise<{ name: string; value: string }[]> {
  const { rows } = await sql.query<{ name: string; value: string }>(
    `select sequencename as name, last_value::text as value
       from pg_sequences
      where schemaname = current_schema() and last_value is not null
      order by sequencename`,
  );
  return rows;
}

/** Those of `leftOut` tables are in the list of no target, and passed over. */
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

async function writePortableManifest(dir: string, manifest: PortableManifest): Promise<void> {
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

/** How far a copy has come: rows of all tables together, of about so many (0: not known). */
export type OnRows = (copied: { table: string; rows: number; expected: number }) => void;

const newline = 0x0a;

/** Counts the rows that pass, in COPY's text format: within a row a new line is written as `\n`. */
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
