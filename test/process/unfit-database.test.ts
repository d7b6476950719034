import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { databaseKinds, emptyDatabase, type TestDatabase } from '../support/database.ts';
import { runOn, schema } from '../support/template.ts';
import { longOnly } from '../support/share.ts';
import { blocksOf, readProjectFile } from '../docs/readme.ts';
import { runProgram } from '../journeys/process.ts';
import { startOldPostgres } from './old-postgres.ts';
import { password, refusedLine } from './refused-start.ts';

test('a server that is too old', async () => {
  const old = await startOldPostgres('120022');
  const url = `postgresql://me:${password}@127.0.0.1:${old.port}/x`;
  expect(await refusedLine({ DATABASE_URL: url })).toBe(
    `DATABASE_URL: 127.0.0.1:${old.port} is PostgreSQL 12; expected 15 or later: upgrade it.`,
  );
  old.close();
});

describe.each(longOnly(['a server']))('%s that only reads', () => {
  let primary: Cluster;
  let standby: Cluster;
  beforeAll(async () => {
    [primary, standby] = await Promise.all([startThrowAwayCluster(), startThrowAwayCluster()]);
    await Promise.all([primary.halt('fast'), standby.halt('fast')]);
    rmSync(standby.dir, { recursive: true });
    execFileSync('cp', ['-a', primary.dir, standby.dir]);
    writeFileSync(join(standby.dir, 'standby.signal'), '');
    const { username, password, hostname, port } = new URL(primary.url());
    writeFileSync(
      join(standby.dir, 'postgresql.auto.conf'),
      `primary_conninfo = 'user=${username} password=${password} host=${hostname} port=${port}'\n`,
    );
    await primary.start();
    await standby.start();
  });
  afterAll(() => Promise.all([primary.remove(), standby.remove()]));

  test('because it is a standby; a role with the right to see it learns the primary', async () => {
    const said = `DATABASE_URL: 127.0.0.1:${standby.port} is a read-only standby of 127.0.0.1:${primary.port}: name the primary, or an address that always leads to it.`;
    await vi.waitFor(
      () =>
        runOn(standby.url(), async (sql) => {
          const { rows } = await sql.query('select sender_port from pg_stat_wal_receiver');
          expect(rows).toEqual([{ sender_port: primary.port }]);
        }),
      { timeout: 60_000, interval: 200 },
    );
    expect(await refusedLine({ DATABASE_URL: standby.url() })).toBe(said);
  });

  test('because somebody configured it so', async () => {
    await runOn(primary.url(), (sql) =>
      sql.query('alter database postgres set default_transaction_read_only = on'),
    );
    expect(await refusedLine({ DATABASE_URL: primary.url() })).toMatch(
      /allows this role only to read: set default_transaction_read_only to off/,
    );
  });
});

describe.each(longOnly(databaseKinds))('a role on %s that does not own the database', (kind) => {
  let database: TestDatabase;
  const role = `role_${kind}`;
  let name = '';
  let url = '';
  beforeAll(async () => {
    database = await emptyDatabase(kind);
    name = new URL(database.url).pathname.slice(1);
    await database.db.query(`create role ${role} login password '${password}'`);
    const own = new URL(database.url);
    own.username = role;
    own.password = password;
    url = own.href;
  });
  afterAll(async () => {
    await database.db.query(`drop owned by ${role}`);
    await database.db.query(`drop role ${role}`);
    await database.drop();
  });
  const run = async (statements: string[]) => {
    for (const statement of statements) await database.db.query(statement);
  };
  /** Starts the service until it is ready, then stops it in order. */
  const start = async (databaseUrl: string) => {
    const program = runProgram(process.execPath, ['src/main.ts'], {
      env: {
        DATABASE_URL: databaseUrl,
        SECRET: 'a secret for tests that is long enough to be one',
        HTTP_PORT: '0',
        MQTT_PORT: '0',
      },
    });
    await program.printed(/"Ready\."/);
    program.child.kill('SIGTERM');
    expect(await program.ended()).toBe(0);
  };

  test('learns which rights to create are missing, and those suffice', async () => {
    const line = await refusedLine({ DATABASE_URL: url });
    const grants = [
      `GRANT CREATE ON DATABASE "${name}" TO "${role}";`,
      `GRANT CREATE ON SCHEMA public TO "${role}";`,
    ];
    expect(line).toBe(
      `DATABASE_URL: role "${role}" may not create what the service needs in database "${name}": its owner runs ${grants.join(' ')}`,
    );
    await run(grants.slice(0, 1));
    expect(await refusedLine({ DATABASE_URL: url })).toContain(`runs ${grants[1]}`);
    await run(grants.slice(1));
    await start(url);
  });

  test('needs no right to create if everything exists', async () => {
    // What the first one created now belongs to another role.
    await run([`reassign owned by ${role} to current_user`, `drop owned by ${role}`]);
    await start(database.url);
    const documented = documentedGrants({ name, role });
    expect(documented.join()).toContain(schema);
    await run(documented);
    await start(url);
  });

  test('learns if it may not use what exists', async () => {
    await run([`revoke all on presence from ${role}`]);
    expect(await refusedLine({ DATABASE_URL: url })).toMatch(
      /^DATABASE_URL: its role lacks a right .*permission denied for table presence/,
    );
  });
});

/** The statements of docs/starting.md, for this database and this role. */
function documentedGrants({ name, role }: { name: string; role: string }): string[] {
  return blocksOf(readProjectFile('docs/starting.md'), 'sql')
    .join('\n')
    .replaceAll('database sensorium ', `database "${name}" `)
    .replaceAll('sensorium_runs', role)
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}
