import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from 'pg';
import { restore } from '../../src/db/backup/backup.ts';
import { migrate } from '../../src/db/migrate.ts';
import { silent } from '../db/earlier.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { emptyDatabase, type DatabaseKind } from '../support/database.ts';
import { makeJobTables } from '../support/old-jobs.ts';
import { runOn } from '../support/template.ts';
import { unpack } from './archive.ts';
import { databaseAt, embeddedIn, type InstalledDatabase } from './database.ts';
import { filesOf, type Fixture } from './fixture.ts';
import { findSchema } from './rows.ts';

/** An installation of an earlier version that no program of this version has touched yet. */
export type Installation = {
  dir: string;
  /** The variables that tell a program where its database and its secret are. */
  variables: Record<string, string>;
  database: InstalledDatabase;
  remove(): Promise<void>;
};

export type InstallationKind = 'backup' | DatabaseKind;

/** Installs from the backup, restored into a new data directory, or from the rows, on a kind of server. */
export async function install(fixture: Fixture, kind: InstallationKind): Promise<Installation> {
  const dir = makeTemporaryDir();
  const backup = join(dir, 'backup');
  await unpack(filesOf(fixture.version).backup, backup);
  return kind === 'backup'
    ? installBackup(dir, backup)
    : installRows(fixture, kind, { dir, secretFile: join(backup, 'secret') });
}

/**
 * The backup's files work only with the major version of PostgreSQL that wrote them. Once the embedded one is newer,
 * this is refused, and only the rows can test the version.
 */
async function installBackup(dir: string, backup: string): Promise<Installation> {
  const dataDir = join(dir, 'data');
  await restore(backup, dataDir);
  await rm(backup, { recursive: true });
  const database = embeddedIn(dataDir);
  return {
    dir,
    variables: { DATA_DIR: dataDir },
    database,
    async remove() {
      await database.stop();
      await rm(dir, { recursive: true });
    },
  };
}

async function installRows(
  { version, migrations }: Fixture,
  kind: DatabaseKind,
  { dir, secretFile }: { dir: string; secretFile: string },
): Promise<Installation> {
  const database = await emptyDatabase(kind);
  await migrate(database.url, { log: silent, version, count: migrations.length });
  // The rows of versions up to 0.4.0 include graphile-worker's jobs.
  await makeJobTables(database.url);
  const rows = await readFile(filesOf(version).rows, 'utf8');
  await runOn(database.url, async (client) => {
    const schema = await findSchema(client);
    await client.query(`set search_path to ${schema}, public; begin; ${rows}; commit`);
    if (kind === 'timescaledb') await growOld(client);
  });
  return {
    dir,
    variables: { DATABASE_URL: database.url, SECRET_FILE: secretFile, DATA_DIR: dir },
    database: databaseAt(database.url),
    async remove() {
      await database.drop();
      await rm(dir, { recursive: true });
    },
  };
}

/** Does what TimescaleDB's jobs would have done: compresses old chunks and fills the aggregate. */
async function growOld(client: Client): Promise<void> {
  await client.query(
    `select compress_chunk(chunk) from show_chunks('measurement', older_than => now() - interval '3 days') chunk`,
  );
  await client.query(`call refresh_continuous_aggregate('measurement_hour', null, null)`);
}
