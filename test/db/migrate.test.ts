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

describe.each(databaseKinds)('the first step on %s', (kind) => {
  it('creates all or nothing: if it is interrupted, the next start completes it', async () => {
    const database = await emptyDatabase(kind);
    const { url } = database;
    // Holds it after the last table, which is then created but not committed.
    await database.db.query(
      `create function public.hold() returns event_trigger language plpgsql as $$
       begin
         if exists (select from pg_event_trigger_ddl_commands()
                     where object_identity like '%.bridge_status') then
           perform set_config('application_name', 'held', false);
           perform pg_sleep(3600);
         end if;
       end $$;
       create event trigger hold on ddl_command_end when tag in ('CREATE TABLE')
         execute function public.hold()`,
    );
    const cutOff = expect(migrate(url, { log: collectLog() })).rejects.toMatchObject({
      code: '57P01',
    });
    await expect
      .poll(() =>
        database.db
          .query<{ ended: boolean }>(
            `select pg_terminate_backend(pid) as ended from pg_stat_activity
              where datname = current_database() and application_name = 'held'`,
          )
          .then(({ rows }) => rows),
      )
      .toEqual([{ ended: true }]);
    await cutOff;
    const { rows: left } = await database.db.query(listTables);
    expect(left).toEqual([]);
    expect((await database.db.query('select from public.migration')).rowCount).toBe(0);
    await database.db.query('drop event trigger hold; drop function public.hold');
    await migrate(url, { log: collectLog() });
    expect((await database.db.query(listTables)).rowCount).toBeGreaterThan(0);
    await database.drop();
  });
});

describe('a database of a version before the baseline', () => {
  it('is refused, and the error names the first migration that it lacks', async () => {
    const database = await testDatabase();
    // As a version between 0.3.0 and 0.4.0 left it, as far as a start checks.
    await database.db.query(`delete from migration where name >= '000015'`);
    await expect(migrate(database.url, { log: collectLog() })).rejects.toThrow(
      /before 0\.4\.0: it lacks 21 of the 35 migrations of 0\.4\.0, the first is 000015_evidence-log\. Nothing was changed\.\n.*start version 0\.4\.0 on it once \(commit [0-9a-f]{40}\)/,
    );
    expect((await database.db.query('select from migration')).rowCount).toBe(14);
    await database.drop();
  });
});

describe('a migration that something else disturbs', () => {
  /** Fails `times` times with this error. Numbers from a sequence are not rolled back. */
  const disturbed = (times: number, state: string) => `-- Least writer: 0.2.0
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
      writeFileSync(join(dir, '900001_disturbed.sql'), sql);
      await migrate(database.url, { log: collectLog(), dir });
      const { rows } = await database.db.query<{ name: string }>('select name from migration');
      return rows.map(({ name }) => name);
    } finally {
      rmSync(dir, { recursive: true });
      await database.drop();
    }
  }

  it('is run again', async () => {
    expect(await migrateDisturbed(disturbed(2, 'XX000'))).toContain('900001_disturbed');
  });

  it('is given up after the fifth attempt, and at once if it is itself wrong', async () => {
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

it('an error about an unreachable database names it, but not its password', async () => {
  const refused = migrate('postgresql://me:hunter2@127.0.0.1:1/x', { log: collectLog() });
  await expect(refused).rejects.toThrow(/^DATABASE_URL: (?!.*hunter2).*ECONNREFUSED/);
});
