import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import { restorePortableCopy } from '../../src/cli/portable/restore.ts';
import { findPortableManifest } from '../../src/db/portable/write.ts';
import {
  connectionStringOf,
  embeddedSettings,
  findCluster,
  findFreePort,
  startCluster,
  stopCluster,
} from '../../src/db/embedded/cluster.ts';
import { databaseName, readSuperuser } from '../../src/db/embedded/enter.ts';
import { findPackagedPostgres, placePrograms } from '../../src/db/embedded/programs.ts';
import { projectDir } from '../journeys/process.ts';
import { silent } from '../db/earlier.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { databaseKinds, emptyDatabase } from '../support/database.ts';
import { findAddress } from '../support/embedded.ts';
import { shareOf } from '../support/share.ts';
import { runOn, schema } from '../support/template.ts';
import { unpack } from './archive.ts';
import { readCatalog } from './catalog.ts';
import { refused } from './cases.ts';
import { filesOf, readFixture } from './fixture.ts';
import { install, type Installation } from './install.ts';
import { runService, writeConfig } from './program.ts';
import { dumpRows, findSchema } from './rows.ts';

it('the versions are those before 0.4.0', () => {
  expect(refused.map(({ version }) => version)).toEqual(['0.1.0', '0.2.0', '0.3.0']);
});

describe.each(shareOf(refused))('an installation of $version', (fixture) => {
  let installation: Installation;
  beforeAll(async () => {
    installation = await install(fixture, 'backup');
  });
  afterAll(() => installation?.remove());

  /** Everything that a start could change: tables, rows, owners, and who may log in. */
  const look = () =>
    runOnFiles(installation.variables['DATA_DIR'] ?? '', async (client) => {
      const found = await findSchema(client);
      const { rows: owners } = await client.query(
        `select nspname, relname, pg_get_userbyid(relowner) as owner
           from pg_class join pg_namespace n on n.oid = relnamespace
          where nspname in ($1, 'public', 'graphile_worker') order by 1, 2`,
        [found],
      );
      const { rows: roles } = await client.query('select * from pg_roles order by rolname');
      const { rows: migrations } = await client.query('select * from public.migration order by id');
      return {
        catalog: await readCatalog(client, found),
        rows: await dumpRows(client),
        owners,
        roles,
        migrations,
      };
    });

  it('is refused, with the way through 0.4.0, and remains unchanged', async () => {
    const { variables, dir } = installation;
    const configFile = await writeConfig(dir, 'http://127.0.0.1:1/sms');
    const before = await look();
    const running = runService({ variables, configFile });
    expect(await running.ended()).not.toBe(0);
    const lacking = 35 - fixture.migrations.length;
    expect(running.stderr()).toContain(
      `The database is of a version before 0.4.0: it lacks ${lacking} of the 35 migrations of 0.4.0`,
    );
    expect(running.stderr()).toMatch(/start version 0\.4\.0 on it once \(commit 2b6ac128/);
    expect(running.stderr()).toContain('docs/upgrading.md');
    expect(await findAddress(variables['DATA_DIR'] ?? '')).toBeNull();
    expect(await look()).toEqual(before);
  });
});

/** With a server of its own, configured as before 0.3.0: a server of this version would refuse the files. */
async function runOnFiles<T>(dataDir: string, work: (client: Client) => Promise<T>): Promise<T> {
  const { clusterDir, owner } = await findCluster(dataDir);
  if (clusterDir === null) throw new Error(`There is no database in ${dataDir}.`);
  const programs = await placePrograms(findPackagedPostgres(), owner);
  const address = { socketDir: null, port: await findFreePort() };
  const settings = embeddedSettings();
  await startCluster(programs, clusterDir, { settings, address, timeoutSeconds: 60 });
  try {
    const login = await readSuperuser(dataDir);
    return await runOn(connectionStringOf(address, login, databaseName), work);
  } finally {
    await stopCluster(programs, clusterDir, 'fast', 60);
  }
}

it('docs/upgrading.md names the commit that the refusal names', async () => {
  const docs = await readFile(join(projectDir, 'docs/upgrading.md'), 'utf8');
  const source = await readFile(join(projectDir, 'src/db/baseline.ts'), 'utf8');
  const commit = /[0-9a-f]{40}/.exec(source)?.[0] ?? '';
  expect(docs).toContain(commit);
});

describe.each(databaseKinds)('a portable copy of 0.4.0', (kind) => {
  it(`is restored on ${kind}: the same tables, and all rows`, async () => {
    const dir = join(makeTemporaryDir(), 'copy');
    await unpack(filesOf('0.4.0').portable, dir);
    const manifest = await findPortableManifest(dir);
    if (manifest === null) throw new Error('The fixture holds no portable copy.');
    expect(manifest).toMatchObject({
      programVersion: '0.4.0',
      migrations: (await readFixture('0.4.0')).migrations,
    });
    const database = await emptyDatabase(kind);
    const config = { databaseUrl: database.url, dataDir: dir, secret: null, previousSecret: null };
    await restorePortableCopy(config, dir, manifest);
    const empty = await emptyDatabase(kind);
    const made = await migrate(empty.url, { log: silent });
    const fresh = await runOn(empty.url, (client) => readCatalog(client, made.schema));
    await empty.drop();
    await runOn(database.url, async (client) => {
      expect(await readCatalog(client, schema)).toBe(fresh);
      for (const { name, rows } of manifest.tables) {
        const { rows: found } = await client.query(`select count(*)::int as n from ${name}`);
        expect({ name, found }).toEqual({ name, found: [{ n: rows }] });
      }
    });
    await database.drop();
    await rm(join(dir, '..'), { recursive: true });
  });
});
