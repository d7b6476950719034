import type { Sql } from '../sql.ts';

/** A table of this program as it stands in the database. */
export type Table = { name: string; columns: string[]; parents: string[] };

/** Tables that a portable copy goes without, and why; all others are in it. */
export const leftOut: Record<string, string> = {
  migration: 'the program that restores makes the tables itself, and notes which steps it took',
  sensorium_schema: 'says where the tables are: the program that restores places them itself',
  delivering_process: 'says which processes deliver messages now, and by what',
  unfinished_restore: 'marks a database that a portable copy is being put into',
};

/** What is written in place of a column's value: no device is connected to a database that was copied. */
export const replaced: Record<string, Record<string, string>> = {
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
export async function estimateRows(sql: Sql, tables: readonly Table[]): Promise<number> {
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
export async function listSequences(sql: Sql): Promise<{ name: string; value: string }[]> {
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
