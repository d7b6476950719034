import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { runner, type MigrationBuilder } from 'node-pg-migrate';
import pg from 'pg';
import { StartError } from '../start-error.ts';
import { refuseUnfinished } from './portable/unfinished.ts';
import { offerTimescale, readStorage, type Storage } from './storage.ts';

/** Where messages about the migrations go; a pino logger is one. */
export type MigrationLog = { info(message: string): void; warn(message: string): void };

/** What a migration in TypeScript exports. `pgm.noTransaction()` is for what cannot run inside one. */
export type MigrationModule = { up(pgm: MigrationBuilder): void | Promise<void> };

const migrationsDir = new URL('./migrations/', import.meta.url).pathname;
const migrationsTable = 'migration';

/** Any number that nothing else locks; held while one process migrates and the others wait. */
const migrationLock = 7200;

/**
 * Brings the database to this program's schema and says what kind of storage it is. Several
 * processes may call it at once: one does the work, the others wait for it. With `steps` it takes so
 * many and no more, also on a database that is being restored.
 */
export async function migrate(
  connectionString: string,
  { log, steps }: { log: MigrationLog; steps?: number },
): Promise<Storage> {
  const client = new pg.Client({ connectionString });
  // A lost connection fails the query under way; without a listener it would end the process too.
  client.on('error', () => undefined);
  await connect(client);
  try {
    await waitForLock(client);
    if (steps === undefined) await refuseUnfinished(client);
    if (!(await isMigrated(client))) await offerTimescale(client, log);
    const done = await runner({
      dbClient: client,
      dir: migrationsDir,
      migrationsTable,
      direction: 'up',
      ...(steps !== undefined && { count: steps }),
      singleTransaction: false,
      noLock: true,
      logger: { debug: nothing, info: nothing, warn: log.warn.bind(log), error: nothing },
      migrationLoaderStrategies: [
        { extensions: ['.sql'], loader: 'legacySql' },
        { extensions: ['.ts'], loader: loadModules },
      ],
    });
    const last = done.at(-1);
    if (last) log.info(`Migrated the database to ${last.name}, in ${countSteps(done.length)}.`);
    return await readStorage(client);
  } finally {
    // Ends the session, and with it the lock.
    await client.end();
  }
}

/** The first that is asked of a database: what is wrong with its address shows here. */
async function connect(client: pg.Client): Promise<void> {
  try {
    await client.connect();
  } catch (error) {
    const reason = error instanceof Error ? error.message || error.name : String(error);
    throw new StartError(`DATABASE_URL: no connection to the database (${reason}).`, {
      cause: error,
    });
  }
}

/**
 * Asks again and again rather than waiting in the server: a waiting statement keeps its snapshot,
 * and a step such as `create index concurrently` would wait for that snapshot for ever.
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

async function isMigrated(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    `select to_regclass($1) is not null as found`,
    [migrationsTable],
  );
  return rows[0]?.found === true;
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
