import { pathToFileURL } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { runner, type MigrationBuilder } from 'node-pg-migrate';
import type pg from 'pg';
import { kindOf, stateOf, states } from './errors.ts';
import type { Log } from '../log/logger.ts';
import { version as programVersion } from '../version.ts';
import { checkDatabaseRights, checkServer } from './connect.ts';
import { connectFirst } from './connect-first.ts';
import { listMigrations, migrationsDir, type KnownMigration } from './known-migrations.ts';
import { refuseForeign } from './may-write.ts';
import { leastWriterAfter, placeTables } from './place-tables.ts';
import { schemaNameFor } from './schema-name.ts';
import { refuseUnfinished } from './portable/unfinished.ts';
import { migrationTable, readSchemaState } from './schema-state.ts';
import { offerTimescale, readStorage, type Storage } from './storage.ts';

/** Where messages about the migrations go. */
export type MigrationLog = Pick<Log, 'info' | 'warn'>;

/** What a migration in TypeScript exports. `pgm.noTransaction()` is for what cannot run inside one. */
type MigrationModule = { up(pgm: MigrationBuilder): void | Promise<void> };

export type MigrateOptions = {
  log: MigrationLog;
  /** Of the program that migrates; this one's if absent. */
  version?: string;
  /** Where its migrations are; this program's if absent. */
  dir?: string;
  /** Only so many of its migrations, also on a database that is being restored. */
  steps?: number;
};

/** A database that has this program's schema, and where its tables are. */
export type Migrated = Storage & { schema: string };

/** An advisory lock of its own, held while one process migrates and the others wait. */
const migrationLock = 7200;

/** A step that takes longer is logged. */
const longStepMs = 1_000;

/**
 * Brings the database to this program's schema and says what kind of storage it is, and where. Several
 * processes may call it at once: one does the work, the others wait for it. Throws a StartError where a
 * later version has been here that does not let this one write.
 */
export async function migrate(
  connectionString: string,
  { log, version = programVersion, dir = migrationsDir, steps }: MigrateOptions,
): Promise<Migrated> {
  const known = (await listMigrations(dir)).slice(0, steps);
  const client = await connectFirst(connectionString);
  try {
    await checkServer(client, `${client.host}:${client.port}`);
    await waitForLock(client);
    if (steps === undefined) await refuseUnfinished(client);
    const state = await readSchemaState(client);
    refuseForeign(state, known, version);
    await checkDatabaseRights(client, state.schema?.name ?? schemaNameFor(leastWriterAfter(known)));
    if (state.applied.length === 0) await offerTimescale(client, log);
    const applied = new Set(state.applied.map(({ name }) => name));
    const pending = known.filter(({ name }) => !applied.has(name));
    const schema = await placeTables(client, state, { version, pending, log });
    await client.query(`select set_config('sensorium.program_version', $1, false)`, [version]);
    for (const migration of pending)
      await untilUndisturbed(client, () => runMigration(client, migration, schema.name, dir, log));
    const last = pending.at(-1);
    if (last)
      log.info(
        { event: 'database.migrated' },
        `Migrated the database to ${last.name}, in ${countSteps(pending.length)}.`,
      );
    return { ...(await readStorage(client)), schema: schema.name };
  } finally {
    // Ends the session, and with it the lock.
    await client.end();
  }
}

const attempts = 5;
const againMs = 500;

/**
 * Runs a migration again that something else disturbed: a job of TimescaleDB's changes rows of the catalogue that
 * a migration removes, and then whoever comes second gets an internal error.
 */
async function untilUndisturbed(client: pg.Client, run: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      const isPassing =
        kindOf(error) === 'serialization' || stateOf(error) === states.internalError;
      if (attempt === attempts || !isPassing) throw error;
      await client.query('rollback');
      await delay(againMs);
    }
  }
}

/** The next one that has not run, with its row in the table of migrations, in one transaction. */
async function runMigration(
  client: pg.Client,
  { name, leastWriter }: KnownMigration,
  schema: string,
  dir: string,
  log: MigrationLog,
): Promise<void> {
  // oxlint-disable-next-line no-restricted-globals -- how long a step took, for the log
  const sinceMs = performance.now();
  const warn = (text: string) =>
    log.warn(
      { event: 'database.migration-warning', migration: name, text },
      'A migration has a warning.',
    );
  await client.query(`select set_config('sensorium.least_writer', $1, false)`, [leastWriter]);
  const [done] = await runner({
    dbClient: client,
    dir,
    migrationsTable: migrationTable.name,
    migrationsSchema: migrationTable.schema,
    // Extensions have their functions in `public`.
    schema: [schema, 'public'],
    direction: 'up',
    count: 1,
    // Migrations of a later version in between are ignored: `refuseForeign` allowed them.
    checkOrder: false,
    singleTransaction: false,
    noLock: true,
    logger: { debug: nothing, info: nothing, warn, error: nothing },
    migrationLoaderStrategies: [
      { extensions: ['.sql'], loader: 'legacySql' },
      { extensions: ['.ts'], loader: loadModules },
    ],
  });
  if (done?.name !== name) throw new Error(`Expected to run ${name}, but ran ${done?.name}.`);
  // oxlint-disable-next-line no-restricted-globals -- how long a step took, for the log
  const ms = performance.now() - sinceMs;
  if (ms > longStepMs)
    log.info(
      { event: 'database.migration-slow' },
      `Migration ${name} took ${(ms / 1_000).toFixed(1)} s.`,
    );
}

/**
 * Polls instead of waiting in the server: a waiting statement keeps its snapshot, and a step such as
 * `create index concurrently` would wait for that snapshot without end.
 */
async function waitForLock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>(
      'select pg_try_advisory_lock($1) as locked',
      [migrationLock],
    );
    if (rows[0]?.locked) return;
    await delay(100);
  }
}

/** Node strips the types itself, so a migration in TypeScript needs no other loader. */
async function loadModules(filePaths: string[]) {
  return Promise.all(
    filePaths.map(async (path) => ({
      id: path,
      filePaths: [path],
      actions: (await import(pathToFileURL(path).href)) as MigrationModule,
    })),
  );
}

function countSteps(count: number): string {
  return count === 1 ? 'one step' : `${count} steps`;
}

function nothing(): void {}
