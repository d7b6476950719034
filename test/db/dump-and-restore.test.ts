import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { blocksOf, getSection, readProjectFile } from '../docs/readme.ts';
import { runProgram } from '../journeys/process.ts';
import { findTimescaleBinDir, startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { runOn, schema } from '../support/template.ts';

const binDir = findTimescaleBinDir();
const dayMs = 86_400_000;

/** The commands in docs/backup.md for the old server and for the new one. */
const [, ...recipe] = blocksOf(getSection('A database of your own', 'docs/backup.md'), 'sh');

// Without the library PostgreSQL offers no TimescaleDB, and the service uses plain tables.
describe.skipIf(binDir === null).each([
  ['TimescaleDB', [] as string[]],
  ['plain PostgreSQL', ['shared_preload_libraries=']],
])('pg_dump and pg_restore as docs/backup.md has them, on %s', (kind, settings) => {
  const isTimescale = kind === 'TimescaleDB';
  let old: Cluster;
  let fresh: Cluster;
  let cwd: string;
  beforeEach(async () => {
    const make = () => startThrowAwayCluster({ timescaledb: true, settings });
    [old, fresh] = await Promise.all([make(), make()]);
    cwd = mkdtempSync(join(tmpdir(), 'dump-'));
  });
  afterEach(async () => {
    await Promise.all([old?.remove(), fresh?.remove()]);
    if (cwd) rmSync(cwd, { recursive: true });
  });

  const asRole = (cluster: Cluster, role: string) => {
    const url = new URL(cluster.url('sensorium'));
    url.username = role;
    url.password = 'of this role';
    return url.href;
  };
  /** Starts the service until it is ready, runs `meanwhile`, stops it in order, and returns its log. */
  const serve = async (url: string, meanwhile: () => Promise<void> = async () => {}) => {
    const program = runProgram(process.execPath, ['src/main.ts'], {
      env: {
        DATABASE_URL: url,
        SECRET: 'a secret for tests that is long enough to be one',
        HTTP_PORT: '0',
        MQTT_PORT: '0',
      },
    });
    await program.printed(/"Ready\."/);
    await meanwhile();
    program.child.kill('SIGTERM');
    expect(await program.ended()).toBe(0);
    return program.stdout();
  };
  const shell = async (cluster: Cluster, commands: string | undefined) => {
    const { hostname, port, username, password } = new URL(cluster.url());
    const shown = (commands ?? '').split('\n');
    const input = shown
      .filter((line) => isTimescale || !line.includes('# with TimescaleDB only'))
      .join('\n');
    const program = runProgram('sh', ['-eu'], {
      env: {
        PATH: `${binDir}${delimiter}${process.env['PATH'] ?? ''}`,
        PGHOST: hostname,
        PGPORT: port,
        PGUSER: username,
        PGPASSWORD: password,
      },
      input,
      cwd,
    });
    expect([await program.ended(), program.stderr()]).toEqual([0, expect.any(String)]);
  };
  const days = async (url: string) =>
    runOn(url, async (sql) => {
      const { rows } = await sql.query<{ val: number; age: number }>(
        `select val, round(extract(epoch from now() - ts) / 86400)::integer as age from measurement order by ts`,
      );
      return rows;
    });

  test('keep what was measured, the owners, and the rights of the role that only uses it', async () => {
    await runOn(old.url(), async (sql) => {
      for (const role of ['sensorium_owns', 'sensorium_runs'])
        await sql.query(`create role ${role} login password 'of this role'`);
      await sql.query('create database sensorium owner sensorium_owns');
    });
    await serve(asRole(old, 'sensorium_owns'));
    const grants = blocksOf(readProjectFile('docs/starting.md'), 'sql').join('\n');
    await runOn(old.url('sensorium'), (sql) => sql.query(grants));
    const nowTs = Date.now();
    await runOn(asRole(old, 'sensorium_runs'), async (sql) => {
      await sql.query(`
        with a as (insert into account (email, password_hash) values ('me@example.org', 'none') returning id),
             d as (insert into device (account_id, connector_id, configuration)
                   select id, 1, '{"device": {}, "module": []}' from a returning id)
        insert into series (device_id, s_id) select id, '0x1' from d`);
      for (const age of [200, 40, 20, 1])
        await sql.query(
          'insert into measurement (series_id, ts, val) select id, to_timestamp($1), $2 from series',
          [(nowTs - age * dayMs) / 1_000, age],
        );
    });
    if (isTimescale)
      await runOn(asRole(old, 'sensorium_owns'), (sql) =>
        sql.query(
          `select compress_chunk(c) from show_chunks('measurement', older_than => interval '10 days') c`,
        ),
      );

    expect(recipe).toHaveLength(2);
    await shell(old, recipe[0]);
    await shell(fresh, recipe[1]);

    expect(await days(fresh.url('sensorium'))).toEqual(await days(old.url('sensorium')));
    const { foreign, owned } = await runOn(fresh.url('sensorium'), async (sql) => {
      const { rows } = await sql.query<{ foreign: number; owned: number }>(
        `select count(*) filter (where pg_get_userbyid(relowner) <> 'sensorium_owns')::integer as foreign,
                count(*)::integer as owned
           from pg_class where relnamespace = $1::regnamespace`,
        [schema],
      );
      return rows[0] ?? { foreign: -1, owned: 0 };
    });
    expect([foreign, owned]).toEqual([0, expect.any(Number)]);
    expect(owned).toBeGreaterThan(40);
    if (isTimescale)
      await runOn(asRole(fresh, 'sensorium_owns'), async (sql) => {
        const { rows: jobs } = await sql.query<{ job_id: number; owner: string }>(
          `select job_id, owner::text from timescaledb_information.jobs where hypertable_schema = $1`,
          [schema],
        );
        expect(jobs.length).toBeGreaterThan(0);
        expect(new Set(jobs.map(({ owner }) => owner))).toEqual(new Set(['sensorium_owns']));
        for (const { job_id: id } of jobs) await sql.query(`call run_job(${id})`);
      });

    // The role without DDL rights runs the service, whose upkeep drops expired chunks.
    const log = await serve(asRole(fresh, 'sensorium_runs'), async () => {
      await expect
        .poll(async () => (await days(fresh.url('sensorium'))).map(({ val }) => val), {
          timeout: 60_000,
        })
        .toEqual([40, 20, 1]);
    });
    expect(log).not.toContain('permission denied');
  });
});
