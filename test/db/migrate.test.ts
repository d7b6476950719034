import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import { describeStorage } from '../../src/db/storage.ts';
import { findTimescaleBinDir, startThrowAwayCluster, type Cluster } from '../harness/cluster.ts';
import { databaseKinds, emptyDatabase, testDatabase } from '../harness/database.ts';
import { runOn } from '../harness/template.ts';

function collectLog() {
  const lines: string[] = [];
  return {
    lines,
    info: (line: string) => lines.push(line),
    warn: (line: string) => lines.push(line),
  };
}

const listTables = `select tablename from pg_tables where schemaname = 'public' order by 1`;

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

describe.skipIf(findTimescaleBinDir() === null)('the other builds of TimescaleDB’s server', () => {
  let apache: Cluster;
  let plain: Cluster;
  beforeAll(async () => {
    [apache, plain] = await Promise.all([
      startThrowAwayCluster({ timescaledb: true, settings: ['timescaledb.license=apache'] }),
      startThrowAwayCluster({ timescaledb: true, settings: ['shared_preload_libraries='] }),
    ]);
  });
  afterAll(async () => {
    await apache.remove();
    await plain.remove();
  });

  it('migrate where it is the Apache build', async () => {
    const storage = await migrate(apache.url(), { log: collectLog() });
    expect(storage.kind).toBe('timescaledb-apache');
    expect(describeStorage(storage)).toContain('Apache');
  });

  it('migrate as plain PostgreSQL where it is not loaded, and say so', async () => {
    const log = collectLog();
    const storage = await migrate(plain.url(), { log });
    expect(storage).toMatchObject({ kind: 'postgresql', timescaledbVersion: null });
    expect(log.lines[0]).toContain('shared_preload_libraries');
    const tables = await runOn(plain.url(), (client) => client.query(listTables));
    expect(tables.rows).toContainEqual({ tablename: 'measurement' });
  });
});
