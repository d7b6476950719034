import {
  cp,
  link,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { restorePortableCopy } from '../../src/cli/portable/restore.ts';
import { readPostmasterFile } from '../../src/db/embedded/cluster.ts';
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { loadTables } from '../../src/db/portable/load.ts';
import {
  backUpPortable,
  findPortableManifest,
  type PortableManifest,
} from '../../src/db/portable/write.ts';
import { StartError } from '../../src/start-error.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import {
  databaseKinds,
  emptyDatabase,
  testDatabase,
  type TestDatabase,
} from '../support/database.ts';
import { runOn } from '../support/template.ts';
import { makeLaterMigrations } from '../support/tomorrow.ts';
import { longOnly, shareOf, shortOnly } from '../support/share.ts';
import { runProgram } from '../journeys/process.ts';
import { fillRows } from './many-rows.ts';

const dir = makeTemporaryDir();
const dataDir = join(dir, 'data');
const copyDir = join(dir, 'copy');
const log = { info: () => undefined, warn: () => undefined };
const rows = 20_000;
const databases: TestDatabase[] = [];
let manifest: PortableManifest;

async function opened(database: Promise<TestDatabase>): Promise<TestDatabase> {
  databases.push(await database);
  return database;
}

beforeAll(async () => {
  const source = await opened(testDatabase());
  await runOn(source.url, (client) => fillRows(client, rows));
  const from = { connectionString: source.url, dataDir };
  ({ manifest } = await backUpPortable(from, copyDir));
});
afterAll(async () => {
  for (const database of databases) await database.drop();
  rmSync(dir, { recursive: true });
});

const restoreInto = (databaseUrl: string | null, from = copyDir, at = dataDir, read = manifest) =>
  restorePortableCopy({ databaseUrl, dataDir: at, secret: null, previousSecret: null }, from, read);

const countRows = async (url: string) =>
  runOn(url, async (client) => {
    const text = 'select (select count(*) from measurement) + (select count(*) from event) as n';
    return Number((await client.query<{ n: string }>(text)).rows[0]?.n);
  });

describe.each(shareOf(databaseKinds))('into a database on %s', (kind) => {
  test('nothing incomplete is restored, and nothing is created', async () => {
    const target = await opened(emptyDatabase(kind));
    for (const [change, reason] of [
      [(file: string) => truncate(file, 1_000), 'truncated'],
      [(file: string) => rewriteOne(file), 'changed'],
      [async (file: string) => rmSync(file), 'missing'],
    ] as const) {
      const broken = mkdtempSync(join(dir, 'broken-'));
      await cp(copyDir, broken, { recursive: true });
      await change(join(broken, 'measurement.copy.zst'));
      await expect(restoreInto(target.url, broken)).rejects.toThrow(reason);
      await expect(restoreInto(target.url, broken)).rejects.toThrow(StartError);
    }
    const { rows: made } = await target.db.query(
      `select from pg_tables where schemaname = current_schema()`,
    );
    expect(made).toEqual([]);
  });

  test('a link in a copy is refused anywhere: a restore as root would read any file', async () => {
    const target = await opened(emptyDatabase(kind));
    const secretOf = (of: string) => join(of, 'secret');
    const linked = mkdtempSync(join(dir, 'linked-'));
    await cp(copyDir, linked, { recursive: true });
    await writeFile(secretOf(linked), 'a secret that a link shows to whoever asks for it');
    for (const file of ['measurement.copy.zst', 'portable.json', 'secret']) {
      const path = join(linked, file);
      // The link's target is exactly what should be there.
      await rename(path, `${path}.kept`);
      await symlink(`${path}.kept`, path);
      const restoring = async () => {
        const read = await findPortableManifest(linked);
        if (!read) throw new Error('no manifest');
        const config = {
          databaseUrl: target.url,
          dataDir,
          secret: 'another',
          previousSecret: null,
        };
        await restorePortableCopy(config, linked, read);
      };
      await expect(restoring()).rejects.toThrow(`${path}: is a link or a special file`);
      await rm(path);
      await rename(`${path}.kept`, path);
    }
    const { rows: made } = await target.db.query(
      `select from pg_tables where schemaname = current_schema()`,
    );
    expect(made).toEqual([]);
    // Backup tools share equal files by hard links. Whoever can create one could read the file already.
    await rename(join(linked, 'measurement.copy.zst'), join(dir, `shared-${kind}`));
    await link(join(dir, `shared-${kind}`), join(linked, 'measurement.copy.zst'));
    await restoreInto(target.url, linked);
    expect(await countRows(target.url)).toBe(rows * 0.9);
  });

  async function rewriteOne(file: string): Promise<void> {
    const bytes = await readFile(file);
    bytes[500] = (bytes[500] ?? 0) ^ 1;
    await writeFile(file, bytes);
  }

  test('nothing with a migration that this program does not know is restored', async () => {
    const target = await opened(emptyDatabase(kind));
    const later = {
      ...manifest,
      programVersion: '9.8.7',
      migrations: [...manifest.migrations, '999999_of-tomorrow'],
    };
    await expect(restoreInto(target.url, copyDir, dataDir, later)).rejects.toThrow(
      /999999_of-tomorrow.*made by version 9\.8\.7/,
    );
  });

  test("nothing is restored if something is there already, even if only somebody else's table", async () => {
    const ours = await opened(testDatabase(kind));
    await expect(restoreInto(ours.url)).rejects.toThrow('not empty');
    const other = await opened(emptyDatabase(kind));
    await other.db.query('create table somebodys (n integer)');
    await expect(restoreInto(other.url)).rejects.toThrow('it contains public.somebodys');
    expect((await other.db.query('select from somebodys')).rowCount).toBe(0);
  });

  test('an interrupted restore is refused by the service, and completed by a second run', async () => {
    const target = await opened(emptyDatabase(kind));
    const abort = new AbortController();
    const config = { databaseUrl: target.url, dataDir, secret: null, previousSecret: null };
    await expect(
      restorePortableCopy(config, copyDir, manifest, {
        signal: abort.signal,
        onRows: ({ table }) => void (table === 'device' && abort.abort()),
      }),
    ).rejects.toThrow('aborted');
    await expect(migrate(target.url, { log })).rejects.toThrow('incomplete');
    // What was restored before is still there, and is not restored twice.
    expect(await countRows(target.url)).toBe(rows * 0.9);
    expect((await target.db.query('select from device')).rowCount).toBe(0);
    await restoreInto(target.url);
    await migrate(target.url, { log });
    expect(await countRows(target.url)).toBe(rows * 0.9);
    await expect(restoreInto(target.url)).rejects.toThrow('not empty');
  });

  test('a copy of an earlier schema is restored as it is and then migrated, also after an interruption', async () => {
    const { dir: migrations, remove } = makeLaterMigrations([
      { name: '900001_one', leastWriter: '0.2.0', sql: 'alter table device add column one int' },
      {
        name: '900002_two',
        leastWriter: '0.2.0',
        sql: 'alter table device add column two text not null default configuration_of()',
      },
    ]);
    onTestFinished(remove);
    const target = await opened(emptyDatabase(kind));
    const load = () =>
      loadTables(target.url, copyDir, manifest, {
        log,
        dir: migrations,
        complete: async () => undefined,
      });
    // Once the first later migration has run and the second fails, the copy's tables and rows are there.
    await expect(load()).rejects.toThrow('configuration_of');
    expect(await countRows(target.url)).toBe(rows * 0.9);
    await target.db.query(
      `create function configuration_of() returns text language sql return 'of later'`,
    );
    await migrate(target.url, { log, dir: migrations });
    const { rows: found } = await target.db.query<{ n: number; of: string[] }>(
      `select count(*)::int as n, array_agg(distinct two) as of from device`,
    );
    expect(found).toEqual([{ n: expect.any(Number) as number, of: ['of later'] }]);
  });

  test('a copy of a version before 0.4.0 is refused by name, with the way, and nothing is created', async () => {
    const target = await opened(emptyDatabase(kind));
    const earlier = {
      ...manifest,
      programVersion: '0.3.0',
      migrations: manifest.migrations.slice(0, 14),
    };
    await expect(restoreInto(target.url, copyDir, dataDir, earlier)).rejects.toThrow(
      /copy: is of a version before 0\.4\.0: it lacks 21 of the 35 .*000015_evidence-log\. Nothing was restored\.\n.*with version 0\.4\.0 \(commit [0-9a-f]{40}\)/,
    );
    const { rows: made } = await target.db.query(
      `select from pg_namespace where nspname like 'sensorium%'`,
    );
    expect(made).toEqual([]);
  });
});

describe.each(longOnly(['a data directory']))('into %s', () => {
  // While PostgreSQL creates a cluster and no server runs yet, its file contains a negative number.
  test.each([
    ['before the server is there', (pid: number) => pid < 0],
    ['while rows come in', (pid: number) => pid > 0],
  ])(
    'a restore that is killed %s is refused by the service, and completed by a second run',
    async (when, is) => {
      const home = join(dir, `killed ${when}`);
      const run = () =>
        runProgram(process.execPath, ['src/cli/restore.ts', copyDir], { env: { DATA_DIR: home } });
      const killed = run();
      const reached = async () => {
        const made = (await readFile(join(home, 'unfinished-restore'), 'utf8')).trim();
        return is((await readPostmasterFile(made))?.pid ?? 0);
      };
      await vi.waitFor(async () => expect(await reached()).toBe(true), {
        timeout: 60_000,
        interval: 5,
      });
      killed.child.kill('SIGKILL');
      expect(await killed.ended()).not.toBe(0);
      await expect(startEmbeddedDatabase({ dataDir: home, log })).rejects.toThrow('interrupted');
      const second = run();
      expect([await second.ended(), second.stderr()]).toEqual([0, '']);
      const database = await startEmbeddedDatabase({ dataDir: home, log });
      expect(await countRows(database.connectionString)).toBe(rows * 0.9);
      await database.stop();
      const expected = ['database-password', 'postgresql', 'service-password'];
      expect((await readdir(home)).toSorted()).toEqual(expected);
      await expect(restoreInto(null, copyDir, home)).rejects.toThrow('holds a database already');
    },
  );

  test('a failed restore leaves nothing that looks like a database', async () => {
    const home = join(dir, 'failed');
    const abort = new AbortController();
    const config = { databaseUrl: null, dataDir: home, secret: null, previousSecret: null };
    await expect(
      restorePortableCopy(config, copyDir, manifest, {
        signal: abort.signal,
        onRows: () => abort.abort(),
      }),
    ).rejects.toThrow('aborted');
    expect((await readdir(home)).toSorted()).toEqual(['database-password', 'service-password']);
  });
});

describe.each(shortOnly(['a copy']))('%s', () => {
  test('of no database, or of one that is not ours, is not made', async () => {
    const nowhere = { DATA_DIR: join(dir, 'nowhere') };
    const program = runProgram(process.execPath, ['src/cli/backup.ts', '--portable'], {
      env: nowhere,
    });
    expect(await program.ended()).toBe(1);
    expect(program.stderr()).toContain('holds no database');
    const empty = await opened(emptyDatabase());
    const target = join(dir, 'of-empty');
    const from = { connectionString: empty.url, dataDir };
    await expect(backUpPortable(from, target)).rejects.toThrow('nothing to copy');
    await expect(backUpPortable(from, copyDir)).rejects.toThrow('already exists');
    expect((await readdir(dir)).filter((name) => name.startsWith('of-empty'))).toEqual([]);
  });

  test('that is interrupted leaves nothing', async () => {
    const source = databases[0];
    if (!source) throw new Error('No source.');
    const target = join(dir, 'interrupted');
    await runOn(source.url, async (client) => {
      // So that it cannot end before it is told to.
      await client.query('begin');
      await client.query('lock table rejection in access exclusive mode');
      const program = runProgram(process.execPath, ['src/cli/backup.ts', '--portable', target], {
        env: { DATABASE_URL: source.url, SECRET: 'x'.repeat(48), DATA_DIR: dataDir },
      });
      const waiting = async () =>
        (await client.query(`select from pg_locks where not granted`)).rowCount;
      await vi.waitFor(async () => expect(await waiting()).toBe(1), { timeout: 60_000 });
      program.child.kill('SIGTERM');
      expect(await program.ended()).toBe(1);
      expect(program.stderr()).toBe('Interrupted. The copy was removed.\n');
    });
    expect((await readdir(dir)).filter((name) => name.startsWith('interrupted'))).toEqual([]);
  });

  test('distinguishes a damaged copy from something else', async () => {
    const none = mkdtempSync(join(dir, 'none-'));
    expect(await findPortableManifest(none)).toBeNull();
    await writeFile(join(none, 'portable.json'), '{ "format": 2 }');
    await expect(findPortableManifest(none)).rejects.toThrow('damaged, or was written by a later');
  });
});
