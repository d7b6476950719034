import pg from 'pg';
import type { KnownMigration } from './known-migrations.ts';
import { newestOf } from './compare-versions.ts';
import { withTablesLocked, type LockOptions } from './lock-tables.ts';
import { ensureStateTables, saveCurrentSchema } from './schema-state.ts';
import type { CurrentSchema, SchemaState } from './schema-state.ts';
import { schemaNameFor } from './schema-name.ts';
import type { Sql } from './sql.ts';

/** The first version whose tables have a schema of their own. */
const firstWriter = '0.2.0';

/** All that versions before it made in `public`. */
export const earlierInPublic = {
  relations: [
    'account', 'account_event', 'device', 'device_profile', 'device_state', 'event', 'event_feed',
    'event_sense', 'event_seq', 'measured_sense', 'measurement', 'measurement_hour', 'notification',
    'notification_quota', 'presence', 'profile', 'purpose', 'rejection', 'removed_device', 'series',
    'session',
  ],
  functions: ['ms_to_timestamp', 'note_removed_devices'],
}; // prettier-ignore

type PlaceOptions = { version: string; pending: KnownMigration[] } & LockOptions;

/**
 * Moves the tables to the schema where the programs that may write after these migrations look for them,
 * before the first of the migrations runs. Programs find tables by the schema's name, so those that may not
 * write any more can store nothing from then on. Where all may go on, nothing is moved.
 */
export async function placeTables(
  client: pg.Client,
  { applied, schema }: SchemaState,
  { version, pending, ...lock }: PlaceOptions,
): Promise<CurrentSchema> {
  const leastWriter = newestOf([schema?.leastWriter ?? firstWriter, leastWriterAfter(pending)]);
  if (schema?.leastWriter === leastWriter) return schema;
  const target = { name: schemaNameFor(leastWriter), leastWriter, changedBy: version };
  const from = schema?.name ?? 'public';
  const tables = applied.length > 0 ? await listTables(client, from) : [];
  const move = async () => {
    await ensureStateTables(client);
    if (schema) await rename(client, schema.name, target.name);
    else await moveOutOfPublic(client, target.name);
    await saveCurrentSchema(client, target);
  };
  await withTablesLocked(client, tables, move, lock);
  return target;
}

/** The least version that may write once all of these have run. */
export function leastWriterAfter(migrations: KnownMigration[]): string {
  return newestOf([firstWriter, ...migrations.map(({ leastWriter }) => leastWriter)]);
}

/** One step for everything in the schema, an operator's own views included. */
async function rename(client: pg.Client, from: string, to: string): Promise<void> {
  await client.query(
    `alter schema ${pg.escapeIdentifier(from)} rename to ${pg.escapeIdentifier(to)}`,
  );
}

/** Everything else in `public` is not ours. */
async function moveOutOfPublic(client: pg.Client, to: string): Promise<void> {
  const schema = pg.escapeIdentifier(to);
  await client.query(`create schema if not exists ${schema}`);
  for (const { name, kind } of await listEarlier(client))
    await client.query(`alter ${kind} public.${pg.escapeIdentifier(name)} set schema ${schema}`);
}

async function listEarlier(sql: Sql): Promise<{ name: string; kind: string }[]> {
  const { rows } = await sql.query<{ name: string; kind: string }>(
    `select relname as name,
            case relkind when 'S' then 'sequence'
                         when 'v' then 'materialized view'
                         else 'table' end as kind
       from pg_class
      where relnamespace = 'public'::regnamespace
        and relname = any ($1)
        and relkind in ('r', 'v', 'S')
     union all
     select proname, 'function'
       from pg_proc
      where pronamespace = 'public'::regnamespace
        and proname = any ($2)`,
    [earlierInPublic.relations, earlierInPublic.functions],
  );
  return rows;
}

/** The tables of the program there, each as `schema.name`, quoted. */
async function listTables(sql: Sql, schema: string): Promise<string[]> {
  const { rows } = await sql.query<{ name: string }>(
    `select format('%I.%I', $1::text, relname) as name
       from pg_class
      where relnamespace = $1::regnamespace
        and relkind in ('r', 'p')
        and ($1 <> 'public' or relname = any ($2))
      order by relname`,
    [schema, earlierInPublic.relations],
  );
  return rows.map(({ name }) => name);
}
