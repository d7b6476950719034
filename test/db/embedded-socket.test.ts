import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import {
  makeSocketDir,
  readPostmasterFile,
  renewSocketDir,
} from '../../src/db/embedded/cluster.ts';
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { openTestDatabase } from '../support/database.ts';
import { findAddress } from '../support/embedded.ts';
import { runOn } from '../support/template.ts';

const dir = makeTemporaryDir();
const log = { info: () => undefined, warn: () => undefined };
const isRoot = process.getuid?.() === 0;
afterAll(() => rmSync(dir, { recursive: true }));

const socketDirOf = async (dataDir: string) => (await findAddress(dataDir))?.socketDir ?? '';
const select1 = (url: string) => runOn(url, (client) => client.query('select 1'));

/** The TCP sockets on which a process listens (proc(5)): state 0A, found by their inodes. */
function listTcpListeners(pid: number): string[] {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
      return /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? [];
    }),
  );
  const rows = ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8').split('\n').slice(1),
  );
  return rows.filter((row) => {
    const fields = row.trim().split(/\s+/);
    return fields[3] === '0A' && inodes.has(fields[9] ?? '');
  });
}

describe('the embedded database listens', () => {
  const dataDir = join(dir, 'data');

  it('at a Unix socket that only its user can reach, which is removed with it', async () => {
    const database = await startEmbeddedDatabase({ dataDir, log });
    const socketDir = await socketDirOf(dataDir);
    expect(dirname(socketDir)).toBe(dataDir);
    const found = lstatSync(socketDir);
    expect(found.isDirectory() && found.mode & 0o777).toBe(0o700);
    expect(found.uid).toBe(lstatSync(database.clusterDir).uid);
    expect(lstatSync(join(socketDir, '.s.PGSQL.5432')).isSocket()).toBe(true);
    await select1(database.connectionString);
    await database.stop();
    expect(existsSync(socketDir)).toBe(false);
  });

  it.runIf(isRoot)(
    'where another user can neither connect nor put a socket of their own',
    async () => {
      const database = await startEmbeddedDatabase({ dataDir, log });
      const socket = join(await socketDirOf(dataDir), '.s.PGSQL.5432');
      const { pid = 0 } = (await readPostmasterFile(database.clusterDir)) ?? {};
      const run = (uid: number, command: string) =>
        spawnSync('/bin/sh', ['-c', command, 'sh', socket], { cwd: '/', uid, gid: uid }).status;
      const user = lstatSync(socket).uid;
      expect([run(user, 'test -w "$1"'), run(12_345, 'test -e "$1"')]).toEqual([0, 1]);
      process.kill(pid, 'SIGKILL');
      // As after a crash: nothing listens there.
      expect(run(12_345, 'rm -f "$1"; touch "$1"')).not.toBe(0);
      await vi.waitFor(() => select1(database.connectionString), { timeout: 60_000, interval: 50 });
      await database.stop();
    },
  );

  it.runIf(process.platform === 'linux')('at no port', async () => {
    const database = await startEmbeddedDatabase({ dataDir, log });
    const { pid = 0 } = (await readPostmasterFile(database.clusterDir)) ?? {};
    expect(listTcpListeners(pid)).toEqual([]);
    await database.stop();
  });

  it('and while it is away, its socket gone, callers learn that and see no internal error', async () => {
    const database = await startEmbeddedDatabase({ dataDir, log });
    const db = openTestDatabase(database.connectionString);
    await db.query('select 1');
    await database.stop();
    // The open connection notices the end first. The next one finds no socket.
    const asked = () => db.query('select 1').catch((error: unknown) => error);
    await vi.waitFor(
      async () =>
        expect(await asked()).toMatchObject({ code: 'unavailable', cause: { code: 'ENOENT' } }),
      { timeout: 60_000 },
    );
    await db.close();
  });

  it('elsewhere if a path is too long for a socket, or contains a space or a comma', async () => {
    const awkward = join(dir, 'a data, directory', 'long'.repeat(30));
    const database = await startEmbeddedDatabase({ dataDir: awkward, log });
    expect(dirname(await socketDirOf(awkward))).toBe(tmpdir());
    await select1(database.connectionString);
    await database.stop();
  });

  it('removes what killed servers of its own left, and nothing else', async () => {
    const first = await startEmbeddedDatabase({ dataDir, log });
    const used = await socketDirOf(dataDir);
    await first.stop();
    const { uid, gid } = lstatSync(first.clusterDir);
    const make = (name: string) => {
      mkdirSync(join(dataDir, name), { mode: 0o700 });
      chownSync(join(dataDir, name), uid, gid);
    };
    make('sensorium-socket-left00');
    make('sensorium-socket-filled');
    mkdirSync(join(dataDir, 'sensorium-socket-filled', 'kept'));
    const second = await startEmbeddedDatabase({ dataDir, log });
    const left = readdirSync(dataDir).filter((name) => name.startsWith('sensorium-socket-'));
    const current = await socketDirOf(dataDir);
    expect(current).not.toBe(used);
    expect(left.map((name) => join(dataDir, name)).toSorted()).toEqual(
      [current, join(dataDir, 'sensorium-socket-filled')].toSorted(),
    );
    await second.stop();
  });

  it('and connects to nothing behind a link that replaces the directory', async () => {
    const database = await startEmbeddedDatabase({ dataDir, log });
    const socketDir = await socketDirOf(dataDir);
    const moved = join(dir, 'moved');
    renameSync(socketDir, moved);
    symlinkSync(moved, socketDir);
    const { pid = 0 } = (await readPostmasterFile(database.clusterDir)) ?? {};
    await expect(startEmbeddedDatabase({ dataDir, log })).rejects.toThrow(
      new RegExp(
        `^${socketDir}: expected the private directory of the database's socket.*kill ${pid}`,
      ),
    );
    rmSync(socketDir);
    renameSync(moved, socketDir);
    await select1(database.connectionString);
    await database.stop();
  });
});

describe('the directory of a socket', () => {
  const makeBase = (name: string, mode: number) => {
    const base = join(dir, name);
    mkdirSync(base);
    chmodSync(base, mode);
    return base;
  };

  it('is created where nobody else can replace it', async () => {
    const [open, sticky] = [makeBase('open', 0o777), makeBase('sticky', 0o1777)];
    const made = await makeSocketDir([join(dir, 'nowhere'), open, sticky], null);
    expect(dirname(made)).toBe(sticky);
    expect(lstatSync(made).mode & 0o777).toBe(0o700);
    expect(await makeSocketDir([sticky], null)).not.toBe(made);
    await expect(makeSocketDir([open], null)).rejects.toThrow(/^No directory .* TMPDIR/);
    expect(readdirSync(open)).toEqual([]);
  });

  it('is reused by the next server only if it is unchanged', async () => {
    const base = makeBase('again', 0o755);
    const place = join(base, 'sensorium-socket-again0');
    const refused = () => expect(renewSocketDir(place, null)).rejects.toThrow(`${place}: expected`);
    await renewSocketDir(place, null);
    await renewSocketDir(place, null);
    chmodSync(place, 0o750);
    await refused();
    rmSync(place, { recursive: true });
    symlinkSync(makeBase('elsewhere', 0o700), place);
    await refused();
    rmSync(place);
    if (!isRoot) return;
    mkdirSync(place, { mode: 0o700 });
    chownSync(place, 12_345, 12_345);
    await refused();
  });
});
