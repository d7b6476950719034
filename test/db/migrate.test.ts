import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import { describeStorage } from '../../src/db/storage.ts';
import { findTimescaleBinDir, startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { databaseKinds, emptyDatabase, testDatabase } from '../support/database.ts';
import { runOn, schema } from '../support/template.ts';

function collectLog() {
  const lines: string[] = [];
  return {
    lines,
    info: (_: object, line: string) => lines.push(line),
    warn: (_: object, line: string) => lines.push(line),
  };
}

const listTables = `select tablename from pg_tables where schemaname = '${schema}' order by 1`;

describe.each(databaseKinds)('migrations on %s', (kind) => {
  it('run once when several processes start together', async () => {
    const database = await emptyDatabase(kind);
    const log = collectLog();
    const storages = await Promise.all(
      Array.from({ length: 3 }, () => migrate(database.url, { log })),
    );
    expect(storages.map((storage) => storage.kind)).toEqual(Array(3).fill(kind));
    expect(log.lines.filter((line) => line.startsWith('Migrated'))).toHaveLength(1);
    const { rows } = await database.db.query<{ name: string }>('select name from migration');
    expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length);
    await database.drop();
  });

  it('have nothing to do a second time', async () => {
    const database = await testDatabase(kind);
    const log = collectLog();
    await migrate(database.url, { log });
    expect(log.lines).toEqual([]);
    await database.drop();
  });
});

describe('a migration that something else disturbs', () => {
  /** Fails as often as it is told, and with what; numbers from a sequence are not taken back. */
  const disturbed = (times: number, state: string) => `-- Least writer: 0.1.0
do $$ begin
  if nextval('public.tries') <= ${times} then
    raise 'tuple concurrently deleted' using errcode = '${state}';
  end if;
end $$;
create table disturbed ();`;

  async function migrateDisturbed(sql: string) {
    const database = await emptyDatabase();
    const dir = mkdtempSync(join(tmpdir(), 'sensorium-migrations-'));
    try {
      await database.db.query('create sequence public.tries');
      writeFileSync(join(dir, '000001_disturbed.sql'), sql);
      await migrate(database.url, { log: collectLog(), dir });
      const { rows } = await database.db.query<{ name: string }>('select name from migration');
      return rows.map(({ name }) => name);
    } finally {
      rmSync(dir, { recursive: true });
      await database.drop();
    }
  }

  it('is run again', async () => {
    expect(await migrateDisturbed(disturbed(2, 'XX000'))).toContain('000001_disturbed');
  });

  it('is given up after the fifth time, and at once where it is wrong itself', async () => {
    await expect(migrateDisturbed(disturbed(5, 'XX000'))).rejects.toThrow('concurrently');
    await expect(migrateDisturbed(disturbed(1, '22000'))).rejects.toThrow('concurrently');
  });
});

describe.skipIf(findTimescaleBinDir() === null)('a server that has TimescaleDB unloaded', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    const settings = ['shared_preload_libraries='];
    cluster = await startThrowAwayCluster({ timescaledb: true, settings });
  });
  afterAll(() => cluster.remove());

  it('is migrated as plain PostgreSQL, and the log says why', async () => {
    const log = collectLog();
    const storage = await migrate(cluster.url(), { log });
    expect(storage).toMatchObject({ kind: 'postgresql', timescaledbVersion: null });
    expect(describeStorage(storage)).toContain('without TimescaleDB');
    expect(log.lines[0]).toContain('shared_preload_libraries');
    const tables = await runOn(cluster.url(), (client) => client.query(listTables));
    expect(tables.rows).toContainEqual({ tablename: 'measurement' });
  });
});

it('a database that cannot be reached is named, its password is not', async () => {
  const refused = migrate('postgresql://me:hunter2@127.0.0.1:1/x', { log: collectLog() });
  await expect(refused).rejects.toThrow(/^DATABASE_URL: (?!.*hunter2).*ECONNREFUSED/);
});
