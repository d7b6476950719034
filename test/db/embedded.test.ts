import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { majors, readPostmasterFile } from '../../src/db/embedded/cluster.ts';
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';
import { checkVersion } from '../../src/db/embedded/enter.ts';
import { findPackagedPostgres } from '../../src/db/embedded/programs.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { runOn } from '../support/template.ts';

const dir = makeTemporaryDir();
const dataDir = join(dir, 'data');
const clusterDir = join(dataDir, 'postgresql');
const children: ChildProcess[] = [];

afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(dir, { recursive: true });
});

function start(lines: string[] = []) {
  const write = (_: object, line: string) => lines.push(line);
  const log = { info: write, warn: write };
  return startEmbeddedDatabase({ dataDir, log });
}

/** Starts a separate process that runs the database. Resolves when the database is up. */
async function startElsewhere(): Promise<{ url: string; child: ChildProcess }> {
  const script = new URL('../support/embedded-process.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [url] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { url, child };
}

async function killHard(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

const count = (url: string) =>
  runOn(url, async (client) => (await client.query('select n from kept order by n')).rows);
const keep = (url: string, n: number) =>
  runOn(url, (client) => client.query('insert into kept values ($1)', [n]));

async function postmaster(): Promise<number> {
  return (await readPostmasterFile(clusterDir))?.pid ?? 0;
}

describe('the embedded database', () => {
  it('is created on the first start, is durable, and refuses everybody without the password', async () => {
    const lines: string[] = [];
    const database = await start(lines);
    expect(lines[0]).toContain('first start');
    await runOn(database.connectionString, async (client) => {
      await client.query('create table kept (n int)');
      const { rows } = await client.query(
        `select name, setting from pg_settings
         where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses')`,
      );
      expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
        fsync: 'on',
        synchronous_commit: 'on',
        full_page_writes: 'on',
        listen_addresses: '',
      });
    });
    const withoutPassword = new URL(database.connectionString);
    withoutPassword.password = 'guessed';
    await expect(count(withoutPassword.href)).rejects.toThrow('password');
    expect(statSync(join(dataDir, 'database-password')).mode & 0o777).toBe(0o600);
    expect(statSync(clusterDir).mode & 0o777).toBe(0o700);
    await keep(database.connectionString, 1);
    await database.stop();
    expect(await postmaster()).toBe(0);
  });

  it('is found by the second start', async () => {
    const database = await start();
    expect(await count(database.connectionString)).toEqual([{ n: 1 }]);
    await database.stop();
  });

  it('is taken over if a killed process left it running', async () => {
    const { url, child } = await startElsewhere();
    await keep(url, 2);
    const before = await postmaster();
    await killHard(child);
    const database = await start();
    expect(database.connectionString).toBe(url);
    expect(await postmaster()).toBe(before);
    expect(await count(url)).toEqual([{ n: 1 }, { n: 2 }]);
    await database.stop();
  });

  it('recovers what was committed when the server is killed too', async () => {
    const { url, child } = await startElsewhere();
    await keep(url, 3);
    await killHard(child);
    process.kill(await postmaster(), 'SIGKILL');
    const database = await start();
    expect(await count(database.connectionString)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    await database.stop();
  });

  it('starts although another process has its pid by now', async () => {
    const left = `${process.pid}\n${clusterDir}\n1\n1\n\n127.0.0.1\n`;
    writeFileSync(join(clusterDir, 'postmaster.pid'), left);
    const database = await start();
    expect(await count(database.connectionString)).toHaveLength(3);
    await database.stop();
  });

  it('is restarted at the same address when the server ends by itself', async () => {
    const lines: string[] = [];
    const database = await start(lines);
    process.kill(await postmaster(), 'SIGKILL');
    await vi.waitFor(async () => expect(await count(database.connectionString)).toHaveLength(3), {
      timeout: 60_000,
      interval: 50,
    });
    await vi.waitFor(() => expect(lines).toContain('The database is back.'), { timeout: 60_000 });
    await database.stop();
  });

  it('serves one process at a time, and names it', async () => {
    const { url, child } = await startElsewhere();
    await expect(start()).rejects.toThrow(`process ${child.pid}`);
    expect(await count(url)).toHaveLength(3);
    await killHard(child);
    await (await start()).stop();
  });

  it('is refused if another major version wrote it, and names the program that can open it', async () => {
    const file = join(clusterDir, 'PG_VERSION');
    const version = readFileSync(file, 'utf8');
    const refusal = async (written: string) => {
      writeFileSync(file, `${written}\n`);
      return start().then(String, String);
    };
    expect(await refusal('12')).toMatch(
      /written by PostgreSQL 12, and this version includes 18: no version of Sensorium included/,
    );
    expect(await refusal('99')).toMatch(/by PostgreSQL 99, .* a later version of Sensorium wrote/);
    writeFileSync(file, version);
    await (await start()).stop();
  });

  it('is refused by a program with the next major version, and says how to go on', async () => {
    const binDir = mkdtempSync(join(dir, 'next-'));
    chmodSync(binDir, 0o755);
    writeFileSync(join(binDir, 'postgres'), '#!/bin/sh\necho "postgres (PostgreSQL) 19.1"\n', {
      mode: 0o755,
    });
    const next = { programs: { binDir, owner: null }, clusterDir };
    const known = [
      { postgresql: '18', first: '0.1.0', last: '0.7.2' },
      { postgresql: '19', first: '0.8.0', last: null },
    ];
    await expect(checkVersion(next, known)).rejects.toThrow(
      /PostgreSQL 18, .* includes 19: version 0\.7\.2 of Sensorium can still open it \(0\.1\.0 to 0\.7\.2 .*npm run backup -- --portable/,
    );
  });

  it('knows which program includes the PostgreSQL that it includes', () => {
    const { version } = findPackagedPostgres();
    const current = majors.filter(({ last }) => last === null);
    expect(current.map(({ postgresql }) => postgresql)).toEqual([version.split('.')[0]]);
  });

  it('needs a writable directory', async () => {
    const log = { info: () => undefined, warn: () => undefined };
    const below = join(dataDir, 'database-password', 'data');
    await expect(startEmbeddedDatabase({ dataDir: below, log })).rejects.toThrow(
      'cannot be written',
    );
  });
});
