import pg from 'pg';
import { listKnownMigrations } from '../../src/db/baseline.ts';
import { leastWriterAfter, migrate } from '../../src/db/migrate.ts';
import { schemaNameFor } from '../../src/db/database.ts';
import { readStorage } from '../../src/db/storage.ts';

export type DatabaseKind = 'postgresql' | 'timescaledb';

/** A migrated database that each test file clones. */
export type Template = { kind: DatabaseKind; adminUrl: string; name: string };

/** The schema that holds this version's tables. */
export const schema = schemaNameFor(leastWriterAfter(await listKnownMigrations()));

const silent = { info: () => undefined, warn: () => undefined };

/** Creates the template of a kind. Throws if the server is not of that kind. */
export async function createTemplate(adminUrl: string, kind: DatabaseKind): Promise<Template> {
  const name = `template_${kind}_${process.pid}`;
  await runOn(adminUrl, (admin) => admin.query(`create database ${name}`));
  const url = urlOf(adminUrl, name);
  await migrate(url, { log: silent });
  const storage = await runOn(url, readStorage);
  if (storage.kind !== kind) throw new Error(`Expected ${kind}, found ${storage.kind}.`);
  // A template can be cloned only while nobody is connected to it, not even TimescaleDB's own workers.
  if (kind === 'timescaledb')
    await runOn(url, (client) =>
      client.query('select _timescaledb_functions.stop_background_workers()'),
    );
  await runOn(adminUrl, async (admin) => {
    await admin.query(`alter database ${name} allow_connections false`);
    await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
      name,
    ]);
  });
  return { kind, adminUrl, name };
}

export function urlOf(adminUrl: string, database: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${database}`;
  return url.href;
}

/** Runs statements with the program's search path. */
export async function runOn<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = openClient(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** A client with the program's search path, not connected yet. */
export function openClient(connectionString: string): pg.Client {
  const client = new pg.Client({ connectionString, options: `-c search_path=${schema},public` });
  // Statements report their own errors. If the server is killed while none is running, the error comes here.
  client.on('error', () => undefined);
  return client;
}
