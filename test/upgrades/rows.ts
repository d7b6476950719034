import pg from 'pg';
import type { Client } from 'pg';

/**
 * Tables whose rows are useless elsewhere: the new database records its own migrations, and the feed names
 * transactions of this server.
 */
const leftOut = ['migration', 'event_feed'];

/** The schema of this program's tables. Versions from 0.2.0 on have one of their own. */
export async function findSchema(client: Client): Promise<string> {
  const { rows } = await client.query<{ schema: string }>(
    `select relnamespace::regnamespace::text as schema
       from pg_class where relname = 'device_state' and relkind = 'r'`,
  );
  const schema = rows[0]?.schema;
  if (schema === undefined) throw new Error('The database has no table device_state.');
  return schema;
}

/**
 * All rows as SQL that fills a database made by the same migrations, whatever its kind: columns by name, tables
 * before those that refer to them, and the positions of sequences.
 */
export async function dumpRows(client: Client): Promise<string> {
  const schema = await findSchema(client);
  await client.query(`set search_path to ${pg.escapeIdentifier(schema)}`);
  await client.query(`set timezone to 'UTC'`);
  const { rows: tables } = await client.query<{ name: string; columns: string[] }>(
    `with recursive referring as (
       select conrelid as oid, confrelid as referred
         from pg_constraint
        where contype = 'f' and conrelid <> confrelid
     ), depth (oid, depth) as (
       select oid, 0 from pg_class where relnamespace = $1::regnamespace
       union
       select r.oid, d.depth + 1 from referring r join depth d on r.referred = d.oid
     )
     select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
       from pg_class c
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
        and not a.attisdropped and a.attgenerated = ''
      where c.relnamespace = $1::regnamespace and c.relkind = 'r' and c.relname <> all($2)
      group by c.oid, c.relname
      order by (select max(depth) from depth where depth.oid = c.oid), c.oid`,
    [schema, leftOut],
  );
  const parts: string[] = [];
  for (const table of tables) parts.push(...(await dumpTable(client, table)));
  const { rows: sequences } = await client.query<{ name: string; value: number }>(
    `select sequencename as name, last_value as value
       from pg_sequences
      where schemaname = $1 and last_value is not null and sequencename <> 'migration_id_seq'
      order by 1`,
    [schema],
  );
  for (const { name, value } of sequences)
    parts.push(`select setval(${pg.escapeLiteral(name)}, ${value});`);
  return `${parts.join('\n')}\n`;
}

/** Tables without rows in a fixture, and why. */
const emptyTables: Record<string, string> = {
  alarm_upgrade:
    'filled by the migration that brought alarms, from the devices of earlier versions',
  backtest: 'a result, which can be asked for again; forgotten after 30 days',
  backtest_device: 'the same',
  backtest_lines: 'the same',
  bridge_status: 'written by a process that serves an external broker, and anew every few seconds',
  delivering_process: 'says which processes deliver now: each takes its row along when it stops',
  message_bundle: 'messages for more people than a transaction has room for, until they are made',
  removed_device: 'work that is under way: a row goes when the rest of its device is deleted',
};

/** Throws if a table is empty without a reason: what a later migration does to it would not be noticed. */
export async function expectRowsInEach(client: Client): Promise<void> {
  const schema = await findSchema(client);
  const { rows: tables } = await client.query<{ name: string }>(
    `select relname as name from pg_class
      where relnamespace = $1::regnamespace and relkind = 'r' order by 1`,
    [schema],
  );
  const wrong: string[] = [];
  for (const { name } of tables) {
    const table = `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;
    const { rows } = await client.query(`select from ${table} limit 1`);
    if (rows.length === 0 && !Object.hasOwn(emptyTables, name)) wrong.push(name);
  }
  if (wrong.length > 0)
    throw new Error(
      `No row of the fixture is in: ${wrong.join(', ')}. Let test/upgrades/scene do what fills each, or ` +
        'say in emptyTables of test/upgrades/rows.ts why it stays empty.',
    );
}

async function dumpTable(
  client: Client,
  { name, columns }: { name: string; columns: string[] },
): Promise<string[]> {
  const quoted = columns.map((column) => pg.escapeIdentifier(column));
  const values = quoted.map((column) => `quote_nullable(${column}::text)`).join(', ');
  const { rows } = await client.query<{ row: string }>(
    `select concat_ws(', ', ${values}) as row from ${pg.escapeIdentifier(name)} order by ctid`,
  );
  if (rows.length === 0) return [];
  const lines = rows.map(({ row }) => `(${row})`).join(',\n');
  return [`insert into ${name} (${quoted.join(', ')}) overriding system value values\n${lines};\n`];
}
