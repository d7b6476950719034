import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';
import pg from 'pg';
import { from } from 'pg-copy-streams';
import { StartError } from '../../start-error.ts';
import { refuseLink } from '../backup/backup.ts';
import { refuseEarlierCopy } from '../baseline.ts';
import {
  adoptPostmaster,
  connectionStringOf,
  embeddedSettings,
  findCluster,
  findPostmaster,
  makeCluster,
  readPostmasterFile,
  removeDir,
  type ServerAddress,
  startCluster,
  stopCluster,
} from '../embedded/cluster.ts';
import {
  createEmbeddedCluster,
  databaseName,
  enterAsService,
  type Launch,
  lockAsSuperuser,
  makeAddress,
  readOrMakeSuperuserPassword,
  removeAddress,
} from '../embedded/enter.ts';
import { findPackagedPostgres, placePrograms, type Programs } from '../embedded/programs.ts';
import { migrate, type MigrationLog } from '../migrate.ts';
import {
  findUnfinishedCluster,
  markUnfinished,
  markUnfinishedDir,
  unmarkUnfinished,
  unmarkUnfinishedDir,
} from './unfinished.ts';
import {
  type CopiedTable,
  type CopyOptions,
  countRows,
  findTables,
  listRunMigrations,
  listTables,
  type PortableManifest,
  requireKnownMigrations,
  setSequences,
  withSession,
} from './write.ts';

type LoadOptions = CopyOptions & {
  log: MigrationLog;
  /** The directory of the migrations after the baseline; this program's if absent. */
  dir?: string | undefined;
  /** Creates what is derived from the tables, before the database counts as complete. */
  complete: (client: pg.Client) => Promise<void>;
};

/** The advisory lock of the one restore that fills a database. */
const restoreLock = 7204;

/**
 * Loads a copy into an empty database: creates the tables with the copy's list of migrations, loads the rows, then runs
 * the migrations that came since. Until that is done the service refuses the database. An interrupted restore may be
 * run again. `checkPortableCopy` must have accepted the copy.
 */
export async function loadTables(
  connectionString: string,
  copyDir: string,
  manifest: PortableManifest,
  options: LoadOptions,
): Promise<void> {
  const { log, dir, onStep = () => undefined } = options;
  await withSession(connectionString, async (client) => {
    await takeLock(client);
    await markUnfinished(client);
    await migrateLike(connectionString, client, manifest, options);
    await findTables(client);
    await requireSameTables(client, manifest);
    await fill(client, copyDir, manifest, options);
    await setSequences(client, manifest.sequences);
    onStep('All rows are loaded; analyzing the tables.');
    for (const { name } of manifest.tables)
      await client.query(`analyze ${pg.escapeIdentifier(name)}`);
    await refreshAggregate(client, onStep);
    await options.complete(client);
    await unmarkUnfinished(client);
  });
  await migrate(connectionString, { log, dir });
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
  { log, dir }: LoadOptions,
): Promise<void> {
  const done = await listRunMigrations(client);
  if (done.some((name, i) => name !== migrations[i]))
    throw new StartError(
      'DATABASE_URL: this database contains an interrupted restore of another copy. Create a ' +
        'new one with `create database`.',
    );
  await migrate(connectionString, { log, dir, count: migrations.length });
}

/** The same list of migrations creates the same tables, unless somebody changed a migration. */
async function requireSameTables(client: pg.Client, { tables }: PortableManifest): Promise<void> {
  const describe = (list: { name: string; columns: string[] }[]) =>
    JSON.stringify(list.map(({ name, columns }) => [name, [...columns].sort()]).sort());
  const made = await listTables(client);
  if (describe(made) !== describe(tables))
    throw new StartError(
      'The tables of the copy differ from those that its migrations create: the copy or the ' +
        'migrations were changed.',
    );
}

async function fill(
  client: pg.Client,
  copyDir: string,
  { tables }: PortableManifest,
  { onRows = () => undefined, signal }: LoadOptions,
): Promise<void> {
  const expected = tables.reduce((sum, { rows }) => sum + rows, 0);
  // Removes rows of an interrupted restore.
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
    throw new StartError(`${file}: has ${rows.count()} rows, expected ${expected}.`);
  await client.query('commit');
}

/** TimescaleDB's job would also do this, some time after the start. Answers should be the same at once. */
async function refreshAggregate(client: pg.Client, onStep: (step: string) => void): Promise<void> {
  const { rows } = await client.query<{ found: boolean }>(
    `select to_regclass('measurement_hour') is not null as found`,
  );
  if (!rows[0]?.found) return;
  onStep('Computing the hourly aggregate.');
  await client.query(`call refresh_continuous_aggregate('measurement_hour', null, null)`);
}

/** Throws a StartError for a copy that is incomplete, or that this version cannot restore. */
export async function checkPortableCopy(dir: string, manifest: PortableManifest): Promise<void> {
  refuseEarlierCopy(manifest.migrations, dir);
  await requireKnownMigrations(manifest.migrations, {
    of: dir,
    hint:
      `It was made by version ${manifest.programVersion}: restore it with that version, or with ` +
      'one later than this.',
  });
  for (const { file, bytes, sha256 } of manifest.tables) {
    await refuseLink(join(dir, file));
    const found = await stat(join(dir, file)).catch(() => null);
    if (found?.size !== bytes || (await digest(join(dir, file))) !== sha256)
      throw new StartError(
        `${join(dir, file)}: is missing, truncated or changed; the copy was not restored.`,
      );
  }
}

async function digest(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file, { highWaterMark: 2 ** 20 }), hash);
  return hash.digest('hex');
}

const timeoutSeconds = 120;
const adoptTimeoutMs = 10_000;
/** Nothing locks the tables of a database that was just created. */
const quiet = { warn: () => undefined };

/**
 * Creates a database in a data directory that has none. `fill` fills it while nobody else can reach it, and only then
 * does it get its final name. Throws a StartError if there already is a database.
 */
export async function restoreEmbedded(
  dataDir: string,
  fill: (connectionString: string) => Promise<void>,
): Promise<void> {
  const { clusterDir: found, owner } = await findCluster(dataDir);
  if (found !== null)
    throw new StartError(
      `DATA_DIR ${dataDir}: holds a database already. Move it away, or choose another DATA_DIR.`,
    );
  const programs = await placePrograms(findPackagedPostgres(), owner);
  const password = await readOrMakeSuperuserPassword(dataDir);
  await clearInterrupted(dataDir, programs);
  await makeCluster(dataDir, owner, async (dir) => {
    await markUnfinishedDir(dataDir, dir);
    try {
      await createEmbeddedCluster(programs, dir, password);
      await runAndFill({ programs, clusterDir: dir, dataDir }, fill);
    } catch (error) {
      await removeDir(dir);
      await unmarkUnfinishedDir(dataDir);
      throw error;
    }
  });
  await unmarkUnfinishedDir(dataDir);
}

async function runAndFill(
  { programs, clusterDir, dataDir }: Launch,
  fill: (connectionString: string) => Promise<void>,
): Promise<void> {
  const address = await makeAddress({ programs, clusterDir });
  try {
    const settings = embeddedSettings();
    await startCluster(programs, clusterDir, { settings, address, timeoutSeconds });
    try {
      const { held, service } = await enterAsService(dataDir, address, quiet);
      if (held.heldBy !== null)
        throw new Error('Somebody else is using a database that was just created.');
      try {
        await fill(connectionStringOf(address, service, databaseName));
      } finally {
        await held.client.end();
      }
    } finally {
      await stopCluster(programs, clusterDir, 'fast', timeoutSeconds);
    }
  } finally {
    await removeAddress({ programs }, address);
  }
}

/** A restore that was killed leaves its server running; one that still runs holds the lock. */
async function clearInterrupted(dataDir: string, programs: Programs): Promise<void> {
  const clusterDir = await findUnfinishedCluster(dataDir);
  if (clusterDir === null || !(await stat(clusterDir).catch(() => null))) return;
  const written = await readPostmasterFile(clusterDir);
  if (await findPostmaster(clusterDir)) {
    const address = await adoptPostmaster(clusterDir, programs.owner, adoptTimeoutMs);
    if (address !== null) await refuseBusy(dataDir, address);
    await stopCluster(programs, clusterDir, 'immediate', timeoutSeconds);
  }
  if (written) await removeAddress({ programs }, written.address);
  await removeDir(clusterDir);
}

async function refuseBusy(dataDir: string, address: ServerAddress): Promise<void> {
  const { held } = await lockAsSuperuser(dataDir, address);
  if (held.heldBy !== null)
    throw new StartError(`DATA_DIR ${dataDir}: another restore is writing to it.`);
  await held.client.end();
}
