import {
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { backUp, restore } from '../../src/db/backup/backup.ts';
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';
import { readOrMakeSecret } from '../../src/config/secret.ts';
import { StartError } from '../../src/start-error.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { superuserUrl } from '../support/embedded.ts';
import { runOn } from '../support/template.ts';

const dir = makeTemporaryDir();
const dataDir = join(dir, 'data');
const log = { info: () => undefined, warn: () => undefined };
type EmbeddedDatabase = Awaited<ReturnType<typeof startEmbeddedDatabase>>;
const running: EmbeddedDatabase[] = [];

async function start(at: string): Promise<EmbeddedDatabase> {
  const database = await startEmbeddedDatabase({ dataDir: at, log });
  running.push(database);
  return database;
}

/** What is committed: each transaction writes the same number into both tables. */
async function read(url: string) {
  return runOn(url, async (client) => {
    const { rows } = await client.query<{ n: number; pairs: number; newest: number }>(
      `select count(*)::integer as n,
              (select count(*)::integer from one join other using (n, filler)) as pairs,
              max(n) as newest
         from one`,
    );
    return rows[0] ?? { n: 0, pairs: 0, newest: 0 };
  });
}

describe('a backup of the embedded database', () => {
  let database: EmbeddedDatabase;

  beforeAll(async () => {
    database = await start(dataDir);
    await readOrMakeSecret(dataDir);
    await runOn(database.connectionString, async (client) => {
      await client.query('create table one (n integer primary key, filler text)');
      await client.query('create table other (n integer primary key, filler text)');
    });
  });
  afterAll(async () => {
    await Promise.all(running.map(({ stop }) => stop()));
    rmSync(dir, { recursive: true });
  });

  /** Commits until told to stop, with updates, deletions and checkpoints. Returns the newest number. */
  async function writeAlways(from: number) {
    let newest = from;
    let stopping = false;
    const done = runOn(await superuserUrl(dataDir), async (client) => {
      while (!stopping) {
        const n = newest + 1;
        await client.query('begin');
        await client.query(`insert into one values ($1, repeat(md5($1::integer::text), 100))`, [n]);
        await client.query(`insert into other values ($1, repeat(md5($1::integer::text), 100))`, [
          n,
        ]);
        await client.query(`update one set filler = filler where n % 50 = $1::integer % 50`, [n]);
        await client.query('commit');
        newest = n;
        if (n % 40 === 0) await client.query('checkpoint');
        // So that the log written during the backup spans several files.
        if (n % 30 === 0) await client.query('select pg_switch_wal()');
        if (n % 100 === 0) await client.query('vacuum one');
      }
    });
    return {
      newest: () => newest,
      async stop() {
        stopping = true;
        await done;
      },
    };
  }

  test('made under load contains everything that was committed before it, complete, and starts', async () => {
    const writing = await writeAlways(0);
    await expect.poll(writing.newest, { timeout: 60_000 }).toBeGreaterThan(120);
    const before = writing.newest();
    const backup = join(dir, 'under-load');
    const manifest = await backUp(dataDir, backup);
    const after = writing.newest() + 1;
    await writing.stop();
    // Writing continued during the backup.
    expect(after).toBeGreaterThan(before + 1);
    expect(manifest.files).toBeGreaterThan(100);

    const restoredDir = join(dir, 'restored');
    await restore(backup, restoredDir);
    for (const name of ['secret', 'database-password']) {
      const file = join(restoredDir, name);
      expect(await readFile(file, 'utf8')).toBe(await readFile(join(dataDir, name), 'utf8'));
      expect((await stat(file)).mode & 0o777).toBe(0o600);
    }
    const restored = await start(restoredDir);
    const { n, pairs, newest } = await read(restored.connectionString);
    expect(pairs).toBe(n);
    expect(newest).toBe(n);
    expect(newest).toBeGreaterThanOrEqual(before);
    expect(newest).toBeLessThanOrEqual(after);
    await runOn(restored.connectionString, async (client) => {
      await client.query(`insert into one values (1000000, '')`);
      // No slot remains that would keep its log for ever.
      expect((await client.query('select from pg_replication_slots')).rowCount).toBe(0);
    });
  });

  test('is readable by its owner only', async () => {
    const backup = join(dir, 'under-load');
    expect((await stat(backup)).mode & 0o777).toBe(0o700);
    expect((await stat(join(backup, 'secret'))).mode & 0o777).toBe(0o600);
    // The service's own password is created anew after a restore.
    const expected = ['backup.json', 'database-password', 'postgresql', 'secret'];
    expect((await readdir(backup)).toSorted()).toEqual(expected);
  });

  test('can be made while nothing runs', async () => {
    const expected = await read(database.connectionString);
    await running.shift()?.stop();
    const backup = join(dir, 'cold');
    await backUp(dataDir, backup);
    await restore(backup, join(dir, 'from-cold'));
    const restored = await start(join(dir, 'from-cold'));
    expect(await read(restored.connectionString)).toEqual(expected);
  });

  test('is not written to a path that exists, nor made of a directory without a database', async () => {
    await expect(backUp(dataDir, join(dir, 'cold'))).rejects.toThrow(StartError);
    await expect(backUp(join(dir, 'nothing'), join(dir, 'b'))).rejects.toThrow('holds no database');
    await expect(restore(join(dir, 'cold'), dataDir)).rejects.toThrow('holds a database already');
    expect(await readdir(dir)).not.toContain('b');
  });

  test('is not restored if it contains a link: a restore as root would read any file', async () => {
    const backup = join(dir, 'linked');
    await backUp(dataDir, backup);
    const shadow = join(dir, 'shadow');
    await writeFile(shadow, 'root:secret:0', { mode: 0o600 });
    const places = [
      'postgresql/base/leak',
      'postgresql/PG_VERSION',
      'postgresql/pg_wal',
      'secret',
      'backup.json',
      'postgresql',
    ];
    for (const [n, place] of places.entries()) {
      const kept = join(dir, `kept-${n}`);
      const path = join(backup, place);
      const isThere = await rename(path, kept).then(
        () => true,
        () => false,
      );
      await symlink(isThere && place !== 'secret' ? kept : shadow, path);
      const target = join(dir, `target-of-link-${n}`);
      await expect(restore(backup, target)).rejects.toThrow(`${path}: is a link`);
      expect(await readdir(target).catch(() => [])).not.toContain('postgresql');
      const secret = await readFile(join(target, 'secret'), 'utf8').catch(() => '');
      expect(secret).not.toContain('root:secret');
      await rm(path);
      if (isThere) await rename(kept, path);
    }
    // The same backup, unmodified, is restored.
    await restore(backup, join(dir, 'target-of-none'));
  });

  test('is not restored if it is incomplete, and what is in its place stays untouched', async () => {
    const backup = join(dir, 'cold');
    const target = join(dir, 'target');
    await expect(restore(dir, target)).rejects.toThrow('not a complete backup');
    const control = join(backup, 'postgresql', 'global', 'pg_control');
    await truncate(control, 100);
    await expect(restore(backup, target)).rejects.toThrow('truncated');
    await rm(control);
    await expect(restore(backup, target)).rejects.toThrow('missing');
    expect(await readdir(target)).not.toContain('postgresql');
    await writeFile(join(target, 'secret'), 'another secret');
    await expect(restore(backup, target)).rejects.toThrow('differs');
    expect(await readFile(join(target, 'secret'), 'utf8')).toBe('another secret');
  });
});
