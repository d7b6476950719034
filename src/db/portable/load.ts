import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';
import pg from 'pg';
import { from } from 'pg-copy-streams';
import { StartError } from '../../start-error.ts';
import { migrate, type MigrationLog } from '../migrate.ts';
import type { CopiedTable, PortableManifest } from './manifest.ts';
import { listRunMigrations } from './migrations.ts';
import { countRows } from './rows.ts';
import { findTables, withSession } from './session.ts';
import { markUnfinished, unmarkUnfinished } from './unfinished.ts';
import type { CopyOptions } from './write-copy.ts';
import { listTables, setSequences } from './write.ts';

export type LoadOptions = CopyOptions & {
  log: MigrationLog;
  /** What is not in tables of ours and has to be made from them, before the database counts as whole. */
  complete: (connectionString: string, client: pg.Client) => Promise<void>;
};

/** Held by the one restore that fills a database. */
const restoreLock = 7204;

/**
 * Makes an empty database what the copy was made of: its tables by the migrations of the copy's list,
 * their rows, then the migrations that came since. Until that is done the service refuses the
 * database; a restore that was interrupted may be run again. `checkPortableCopy` has passed the copy.
 */
export async function loadTables(
  connectionString: string,
  copyDir: string,
  manifest: PortableManifest,
  options: LoadOptions,
): Promise<void> {
  const { log, onStep = () => undefined } = options;
  await withSession(connectionString, async (client) => {
    await takeLock(client);
    await markUnfinished(client);
    await migrateLike(connectionString, client, manifest, log);
    await findTables(client);
    await requireSameTables(client, manifest);
    await fill(client, copyDir, manifest, options);
    await setSequences(client, manifest.sequences);
    onStep('All rows are there; looking at them for the planner.');
    for (const { name } of manifest.tables)
      await client.query(`analyze ${pg.escapeIdentifier(name)}`);
    await refreshAggregate(client, onStep);
    await options.complete(connectionString, client);
    await unmarkUnfinished(client);
  });
  await migrate(connectionString, { log });
}

async function takeLock(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ taken: boolean }>(
    'select pg_try_advisory_lock($1) as taken',
    [restoreLock],
  );
  if (!rows[0]?.taken)
    throw new StartError('DATABASE_URL: another restore is filling this database.');
}

async function migrateLike(
  connectionString: string,
  client: pg.Client,
  { migrations }: PortableManifest,
  log: MigrationLog,
): Promise<void> {
  const done = await listRunMigrations(client);
  if (done.some((name, i) => name !== migrations[i]))
    throw new StartError(
      'DATABASE_URL: an interrupted restore of another copy is in this database. Make a new one with `create database`.',
    );
  const steps = migrations.length - done.length;
  if (steps > 0) await migrate(connectionString, { log, steps });
}

/** The same list of migrations makes the same tables, unless somebody changed a migration. */
async function requireSameTables(client: pg.Client, { tables }: PortableManifest): Promise<void> {
  const describe = (list: { name: string; columns: string[] }[]) =>
    JSON.stringify(list.map(({ name, columns }) => [name, [...columns].sort()]).sort());
  const made = await listTables(client);
  if (describe(made) !== describe(tables))
    throw new StartError(
      'The tables of the copy are others than its migrations make: it was changed, or they were.',
    );
}

async function fill(
  client: pg.Client,
  copyDir: string,
  { tables }: PortableManifest,
  { onRows = () => undefined, signal }: LoadOptions,
): Promise<void> {
  const expected = tables.reduce((sum, { rows }) => sum + rows, 0);
  // Rows of an interrupted restore are removed.
  const names = tables.map(({ name }) => pg.escapeIdentifier(name));
  if (names.length > 0) await client.query(`truncate ${names.join(', ')}`);
  let before = 0;
  for (const table of tables) {
    const tell = (rows: number) => onRows({ table: table.name, rows: before + rows, expected });
    await fillTable(client, copyDir, table, tell, signal);
    before += table.rows;
  }
}

async function fillTable(
  client: pg.Client,
  copyDir: string,
  { name, columns, file, rows: expected }: CopiedTable,
  onRows: (rows: number) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  const rows = countRows(onRows);
  const chosen = columns.map((column) => pg.escapeIdentifier(column));
  await client.query('begin');
  await pipeline(
    createReadStream(join(copyDir, file)),
    createZstdDecompress(),
    rows.pass,
    client.query(from(`copy ${pg.escapeIdentifier(name)} (${chosen.join(', ')}) from stdin`)),
    { signal },
  );
  if (rows.count() !== expected)
    throw new StartError(`${file}: has ${rows.count()} rows, and should have ${expected}.`);
  await client.query('commit');
}

/** TimescaleDB's job would do it too, some time after the start: answers are to be the same at once. */
async function refreshAggregate(client: pg.Client, onStep: (step: string) => void): Promise<void> {
  const { rows } = await client.query<{ found: boolean }>(
    `select to_regclass('measurement_hour') is not null as found`,
  );
  if (!rows[0]?.found) return;
  onStep('Computing the hourly aggregate.');
  await client.query(`call refresh_continuous_aggregate('measurement_hour', null, null)`);
}
