import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { type MigrationBuilder, runner } from 'node-pg-migrate';
import pg from 'pg';
import type { Log } from '../log/logger.ts';
import { StartError } from '../start-error.ts';
import { version as programVersion } from '../version.ts';
import { baseline, listKnownMigrations, makeBaseline, refuseEarlier } from './baseline.ts';
import { checkDatabaseRights, checkServer, connectFirst } from './connect.ts';
import { schemaNameFor } from './database.ts';
import { kindOf, stateOf, states } from './errors.ts';
import { refuseUnfinished } from './portable/unfinished.ts';
import {
  type CurrentSchema,
  ensureStateTables,
  type KnownMigration,
  migrationsDir,
  migrationTable,
  newestOf,
  readSchemaState,
  refuseForeign,
  saveCurrentSchema,
  type SchemaState,
} from './schema-state.ts';
import type { Sql } from './sql.ts';
import { offerTimescale, readStorage, type Storage } from './storage.ts';

/** The log for messages about migrations. */
export type MigrationLog = Pick<Log, 'info' | 'warn'>;

/** The exports of a migration in TypeScript. One that cannot run in a transaction calls `pgm.noTransaction()`. */
type MigrationModule = { up(pgm: MigrationBuilder): void | Promise<void> };

type MigrateOptions = {
  log: MigrationLog;
  /** The version of the migrating program; this one's if absent. */
  version?: string;
  /** The directory of its migrations after the baseline; this program's if absent. */
  dir?: string | undefined;
  /**
   * Runs only this many migrations, the baseline's included. Then it also accepts a database that is being restored.
   */
  count?: number;
};

/** A database with this program's schema, and the name of that schema. */
type Migrated = Storage & { schema: string };

/** The advisory lock of the one process that migrates while others wait. */
const migrationLock = 7200;

/** A step that takes longer is logged. */
const longStepMs = 1_000;

/**
 * Brings the database to this program's schema, and returns what kind of storage it is and where the tables are. An
 * empty database gets the baseline's tables in one step. Several processes may call it at once: one migrates, the
 * others wait. Throws a StartError if a later version has migrated the database and does not let this one write, or if
 * the database lacks migrations of the baseline.
 */
export async function migrate(
  connectionString: string,
  { log, version = programVersion, dir = migrationsDir, count }: MigrateOptions,
): Promise<Migrated> {
  const known = (await listKnownMigrations(dir)).slice(0, count);
  const client = await connectFirst(connectionString);
  try {
    await checkServer(client, `${client.host}:${client.port}`);
    await waitForLock(client);
    if (count === undefined) await refuseUnfinished(client);
    const state = await readSchemaState(client);
    refuseForeign(state, known, version);
    refuseEarlier(state);
    await checkDatabaseRights(client, state.schema?.name ?? schemaNameFor(leastWriterAfter(known)));
    const isEmpty = state.applied.length === 0;
    if (isEmpty) await offerTimescale(client, log);
    const applied = new Set(state.applied.map(({ name }) => name));
    const pending = known.filter(({ name }) => !applied.has(name));
    const schema = await placeTables(client, state, { version, pending, log });
    await client.query(`select set_config('sensorium.program_version', $1, false)`, [version]);
    if (isEmpty) await untilUndisturbed(client, () => makeBaseline(client, schema.name));
    const later = isEmpty ? pending.slice(baseline.length) : pending;
    for (const migration of later)
      await untilUndisturbed(client, () => runMigration(client, migration, schema.name, dir, log));
    const last = pending.at(-1);
    if (last)
      log.info(
        { event: 'database.migrated' },
        `Migrated the database to ${last.name}, in ${countSteps(later.length + (isEmpty ? 1 : 0))}.`,
      );
    return { ...(await readStorage(client)), schema: schema.name };
  } finally {
    // Ends the session, which releases the lock.
    await client.end();
  }
}

const attempts = 5;
const againMs = 500;

/**
 * Runs a migration again if something else disturbed it. A TimescaleDB job may change catalog rows that a migration
 * removes, and the second of the two then gets an internal error.
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

/** Runs one migration and records it in the migrations table, in one transaction. */
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
      'A migration reported a warning.',
    );
  await client.query(`select set_config('sensorium.least_writer', $1, false)`, [leastWriter]);
  const [done] = await runner({
    dbClient: client,
    dir,
    migrationsTable: migrationTable.name,
    migrationsSchema: migrationTable.schema,
    // The functions of extensions are in `public`.
    schema: [schema, 'public'],
    direction: 'up',
    count: 1,
    // Migrations of a later version in between are ignored: `refuseForeign` allowed them. Those of the baseline have no
    // file.
    checkOrder: false,
    ignorePattern: '\\..*|README\\.md',
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
 * Polls instead of waiting in the server: a waiting statement keeps its snapshot, and a step such as `create index
 * concurrently` would wait for that snapshot forever.
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

/** The first version whose tables have a schema of their own. */
const firstWriter = '0.2.0';

/**
 * Moves the tables, before the first of these migrations runs, to the schema where the programs that may write
 * afterwards look for them. In an empty database it creates that schema. Programs find tables by the schema's name, so
 * those that may no longer write can store nothing from then on. If all may go on, nothing is moved.
 */
async function placeTables(
  client: pg.Client,
  { schema }: SchemaState,
  { version, pending, ...lock }: { version: string; pending: KnownMigration[] } & LockOptions,
): Promise<CurrentSchema> {
  const leastWriter = newestOf([schema?.leastWriter ?? firstWriter, leastWriterAfter(pending)]);
  if (schema?.leastWriter === leastWriter) return schema;
  const target = { name: schemaNameFor(leastWriter), leastWriter, changedBy: version };
  const tables = schema ? await listTables(client, schema.name) : [];
  const move = async () => {
    await ensureStateTables(client);
    if (schema) await rename(client, schema.name, target.name);
    else await client.query(`create schema if not exists ${pg.escapeIdentifier(target.name)}`);
    await saveCurrentSchema(client, target);
  };
  await withTablesLocked(client, tables, move, lock);
  return target;
}

/** The lowest version that may write once all of these migrations have run. */
export function leastWriterAfter(migrations: KnownMigration[]): string {
  return newestOf([firstWriter, ...migrations.map(({ leastWriter }) => leastWriter)]);
}

/** Moves everything in the schema in one step, including views of the operator. */
async function rename(client: pg.Client, from: string, to: string): Promise<void> {
  await client.query(
    `alter schema ${pg.escapeIdentifier(from)} rename to ${pg.escapeIdentifier(to)}`,
  );
}

/** The program's tables in that schema, each as a quoted `schema.name`. */
async function listTables(sql: Sql, schema: string): Promise<string[]> {
  const { rows } = await sql.query<{ name: string }>(
    `select format('%I.%I', $1::text, relname) as name
       from pg_class
      where relnamespace = $1::regnamespace
        and relkind in ('r', 'p')
      order by relname`,
    [schema],
  );
  return rows.map(({ name }) => name);
}

export type LockOptions = {
  log: Pick<Log, 'warn'>;
  /** How long to wait for sessions that lock a table before they are ended; 10 s. */
  patienceMs?: number;
};

/** The time of one attempt: meanwhile others queue behind its lock request. */
const attemptMs = 500;
const pauseMs = 100;
const maxAttemptsAfterwards = 20;

/** A session that holds a lock on one of the tables. */
type Holder = { pid: number; name: string; state: string | null };

/**
 * Runs `work` in a transaction that locks these tables (each a quoted `schema.name`) exclusively, so earlier
 * transactions on them have ended. After `patienceMs` it ends the sessions that are in the way. Throws a StartError
 * that names those that it may not end.
 */
export async function withTablesLocked(
  client: pg.Client,
  tables: string[],
  work: () => Promise<void>,
  { log, patienceMs = 10_000 }: LockOptions,
): Promise<void> {
  // oxlint-disable-next-line no-restricted-globals -- a migration waits for sessions of other processes
  const deadline = performance.now() + patienceMs;
  for (let late = 0; ;) {
    try {
      await client.query('begin');
      await client.query(`set local lock_timeout = ${attemptMs}`);
      if (tables.length > 0)
        await client.query(
          `lock table ${tables.map((table) => `only ${table}`).join(', ')} in access exclusive mode`,
        );
      await work();
      await client.query('commit');
      return;
    } catch (error) {
      await client.query('rollback');
      if (!isInTheWay(error)) throw error;
      // oxlint-disable-next-line no-restricted-globals -- a migration waits for sessions of other processes
      if (performance.now() > deadline) {
        const left = await endHolders(client, tables, log);
        if (late++ === maxAttemptsAfterwards) throw stillHeld(left, error);
      }
      await delay(pauseMs);
    }
  }
}

function isInTheWay(error: unknown): boolean {
  const state = stateOf(error);
  return state === states.lockNotAvailable || state === states.deadlockDetected;
}

/** Ends the sessions that hold locks, and returns those that it may not end. */
async function endHolders(
  client: pg.Client,
  tables: string[],
  log: LockOptions['log'],
): Promise<Holder[]> {
  const { rows: holders } = await client.query<Holder>(
    `select distinct a.pid, a.application_name as name, a.state
       from pg_locks l
       join pg_stat_activity a using (pid)
      where l.granted
        and l.locktype = 'relation'
        and l.relation = any ($1::text[]::regclass[])
        and l.database = (select oid from pg_database where datname = current_database())
        and l.pid <> pg_backend_pid()`,
    [tables],
  );
  const left: Holder[] = [];
  for (const holder of holders) {
    const ended = await client.query('select pg_terminate_backend($1)', [holder.pid]).then(
      () => true,
      () => false,
    );
    if (ended)
      log.warn(
        { event: 'database.holder-ended' },
        `Ended a session that held the tables for too long: ${describe(holder)}.`,
      );
    else left.push(holder);
  }
  return left;
}

function describe({ pid, name, state }: Holder): string {
  return `${pid} (${[name, state].filter(Boolean).join(', ') || 'unnamed'})`;
}

function stillHeld(holders: Holder[], cause: unknown): StartError {
  const who = holders.map(describe).join(', ') || 'sessions that keep reconnecting';
  return new StartError(
    `The database's tables cannot be moved, because ${who} hold locks on them. End these ` +
      'sessions, then start again.',
    { cause },
  );
}
