import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ask, isPostgres, sslRequest } from '../../lib/servers.ts';
import { codeOf, messageOf } from '../../lib/thrown.ts';
import { StartError } from '../../start-error.ts';
import { ProgramError, type Programs, runProgram, sharedDir, type SystemUser } from './programs.ts';

/** Created with the cluster; it cannot lose its rights. Only for backups and for `handOver`. */
export const superuser = 'sensorium';

/** Creates an empty cluster that requires the password. `clusterDir` must be empty and belong to the owner. */
export async function createCluster(
  programs: Programs,
  clusterDir: string,
  { password, locale }: { password: string; locale: string[] },
): Promise<void> {
  const passwordFile = `${clusterDir}.password`;
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  try {
    if (programs.owner) await chown(passwordFile, programs.owner.uid, programs.owner.gid);
    await runProgram(programs, 'initdb', [
      '--pgdata', clusterDir,
      '--username', superuser,
      '--auth', 'scram-sha-256',
      '--pwfile', passwordFile,
      '--encoding', 'UTF8',
      '--no-instructions',
      ...locale,
    ]); // prettier-ignore
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/**
 * Starts the server and resolves when it accepts connections. Settings are `name=value`; values must not contain
 * spaces.
 */
export async function startCluster(
  programs: Programs,
  clusterDir: string,
  {
    settings,
    address,
    timeoutSeconds,
  }: { settings: string[]; address: ServerAddress; timeoutSeconds: number },
): Promise<void> {
  const all = [...listenAt(address), ...settings];
  await runProgram(programs, 'pg_ctl', [
    'start',
    '--pgdata', clusterDir,
    '--log', join(clusterDir, 'start.log'),
    '--wait', '--timeout', String(timeoutSeconds),
    '--silent',
    '--options', all.map((setting) => `-c ${setting}`).join(' '),
  ]); // prettier-ignore
}

function listenAt({ socketDir, port }: ServerAddress): string[] {
  if (socketDir === null)
    return ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories='];
  return [
    'listen_addresses=',
    `port=${port}`,
    `unix_socket_directories=${socketDir}`,
    'unix_socket_permissions=0700',
  ];
}

/** What a server wrote about itself when it started, and whether it accepts clients by now. */
type Postmaster = { pid: number; address: ServerAddress; isReady: boolean };

/** Reads PostgreSQL's `postmaster.pid`, line by line (its source, miscadmin.h); null if there is none. */
export async function readPostmasterFile(clusterDir: string): Promise<Postmaster | null> {
  try {
    const lines = (await readFile(join(clusterDir, 'postmaster.pid'), 'utf8')).split('\n');
    return {
      pid: Number(lines[0]),
      address: { socketDir: lines[4] || null, port: Number(lines[3]) },
      isReady: lines[7]?.trim() === 'ready',
    };
  } catch {
    return null;
  }
}

/** A port of 127.0.0.1 that was free a moment ago. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('No free port found.');
  return address.port;
}

/** Where a server listens: a Unix socket in a directory, or (null) a port of 127.0.0.1. */
export type ServerAddress = { socketDir: string | null; port: number };

/** A database role and its password. */
export type RoleLogin = { role: string; password: string };

/** The encoded directory of a socket takes the host's place in the URL, as in libpq. */
export function connectionStringOf(
  { socketDir, port }: ServerAddress,
  { role, password }: RoleLogin,
  database: string,
): string {
  const host = socketDir === null ? '127.0.0.1' : encodeURIComponent(socketDir);
  return `postgresql://${role}:${encodeURIComponent(password)}@${host}:${port}/${database}`;
}

/** The cluster of a data directory (null: not created yet), and the user that runs it (null: this one). */
type Location = { clusterDir: string | null; owner: SystemUser | null };

/** The name, in the data directory, of the cluster or of a link to it. */
const name = 'postgresql';

/** Creates the data directory and looks for a cluster in it. */
export async function findCluster(dataDir: string): Promise<Location> {
  try {
    if (await mkdir(dataDir, { recursive: true })) await chmod(dataDir, 0o755);
    const probe = await mkdtemp(join(dataDir, '.probe-'));
    await rm(probe, { recursive: true });
  } catch (error) {
    throw unwritable(dataDir, error);
  }
  const found = await stat(join(dataDir, name)).catch(() => null);
  if (found === null) return { clusterDir: null, owner: findOwner() };
  const clusterDir = await realpath(join(dataDir, name));
  const uid = process.getuid?.();
  if (uid === undefined || found.uid === uid) return { clusterDir, owner: null };
  if (uid !== 0)
    throw new StartError(
      `DATA_DIR ${dataDir}: its database belongs to another user (${found.uid}). Start as that user or as root, or choose another DATA_DIR.`,
    );
  const owner = { name: `user ${found.uid}`, uid: found.uid, gid: found.gid };
  if (!canWrite(owner, clusterDir))
    throw new StartError(
      `DATA_DIR ${dataDir}: ${owner.name}, who owns its database, cannot reach ${clusterDir}.`,
    );
  return { clusterDir, owner };
}

/**
 * Creates a new cluster: `create` fills a temporary directory, which gets its final name only then. So the remains of
 * an interrupted first start are never taken for a database. `movedTo` is the directory outside the data directory that
 * had to be used because the owner cannot reach the data directory.
 */
export async function makeCluster(
  dataDir: string,
  owner: SystemUser | null,
  create: (clusterDir: string) => Promise<void>,
): Promise<{ clusterDir: string; movedTo: string | null }> {
  await removeUnfinished(dataDir);
  // A name of its own, because programs left by a killed process may still write into the directory that it created.
  const here = join(dataDir, `${name}.new-${process.pid}`);
  await makeOwned(here, owner);
  if (owner === null || canWrite(owner, here)) {
    await create(here);
    await rename(here, join(dataDir, name));
    return { clusterDir: await realpath(join(dataDir, name)), movedTo: null };
  }
  await rm(here, { recursive: true });
  await mkdir(sharedDir, { recursive: true, mode: 0o755 });
  const elsewhere = await mkdtemp(join(sharedDir, 'data-'));
  await chmod(elsewhere, 0o755);
  const clusterDir = join(elsewhere, name);
  await makeOwned(clusterDir, owner);
  await create(clusterDir);
  await symlink(clusterDir, join(dataDir, name));
  return { clusterDir, movedTo: elsewhere };
}

async function removeUnfinished(dataDir: string): Promise<void> {
  for (const found of await readdir(dataDir))
    if (found.startsWith(`${name}.new`)) await removeDir(join(dataDir, found));
}

/** Removes a directory, even while programs that are about to end still write into it. */
export async function removeDir(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}

async function makeOwned(dir: string, owner: SystemUser | null): Promise<void> {
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { mode: 0o700 });
  if (owner) await chown(dir, owner.uid, owner.gid);
}

/** Tries it as that user: file modes alone do not account for all parent directories, or for access lists. */
function canWrite(owner: SystemUser, dir: string): boolean {
  const test = spawnSync('/bin/sh', ['-c', 'test -w "$1" && cd "$1"', 'sh', dir], {
    cwd: '/',
    uid: owner.uid,
    gid: owner.gid,
    stdio: 'ignore',
  });
  return test.status === 0;
}

const isAFile = (error: unknown) =>
  ['EEXIST', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');

function unwritable(dataDir: string, error: unknown): StartError {
  const reason = isAFile(error) ? 'it is a file, or inside one' : messageOf(error);
  return new StartError(
    `DATA_DIR ${dataDir}: cannot be written (${reason}). Choose another directory with ` +
      'DATA_DIR, or give this user write access there.',
    { cause: error },
  );
}

/** The user created for the database on a machine without a `postgres` user. */
const createdUser = 'sensorium';

/** The user to run PostgreSQL as: null (this one) unless this is root, which PostgreSQL refuses. */
export function findOwner(): SystemUser | null {
  if (process.getuid?.() !== 0) return null;
  return lookUp('postgres') ?? lookUp(createdUser) ?? createUser() ?? lookUp('nobody');
}

function createUser(): SystemUser | null {
  try {
    execFileSync(
      'useradd',
      ['--system', '--no-create-home', '--shell', '/bin/false', createdUser],
      {
        stdio: 'ignore',
      },
    );
  } catch {
    return null;
  }
  return lookUp(createdUser);
}

function lookUp(name: string): SystemUser | null {
  try {
    return { name, uid: askId('-u', name), gid: askId('-g', name) };
  } catch {
    return null;
  }
}

function askId(what: '-u' | '-g', name: string): number {
  return Number(execFileSync('id', [what, name], { stdio: ['ignore', 'pipe', 'ignore'] }));
}

/** The versions of this program that included a major version of PostgreSQL. `last` is null for the current one. */
export type Major = { postgresql: string; first: string; last: string | null };

/** For a new major version add a row, and set `last` of the previous one. */
export const majors: readonly Major[] = [{ postgresql: '18', first: '0.1.0', last: null }];

/** Which version of this program can open a cluster of PostgreSQL `written`. */
export function describeMajor(written: string, known: readonly Major[] = majors): string {
  const found = known.find(({ postgresql }) => postgresql === written);
  if (found)
    return (
      `version ${found.last ?? found.first} of Sensorium can still open it (${rangeOf(found)} ` +
      `include PostgreSQL ${written}). With that version run \`npm run backup -- --portable ` +
      '<directory>`, then with this one `npm run restore -- <directory>` into a new DATA_DIR.'
    );
  const newest = Math.max(...known.map(({ postgresql }) => Number(postgresql)));
  return Number(written) > newest
    ? 'a later version of Sensorium wrote it: start that one.'
    : 'no version of Sensorium included that PostgreSQL: ask whoever created this directory.';
}

function rangeOf({ first, last }: Major): string {
  return last === null ? `${first} and later` : `${first} to ${last}`;
}

/**
 * The server that runs on this cluster, or null. Removes the pid file of a server that is gone, even if another process
 * has that pid by now: PostgreSQL would refuse to start.
 */
export async function findPostmaster(clusterDir: string): Promise<Postmaster | null> {
  const written = await readPostmasterFile(clusterDir);
  if (written === null) return null;
  if (isAlive(written.pid) && readCommand(written.pid).includes(clusterDir)) return written;
  await rm(join(clusterDir, 'postmaster.pid'), { force: true });
  return null;
}

/**
 * Waits until the running server accepts clients, and returns its address; null if it ends instead, or does not answer
 * in time. Only the server's user can write the address file, so the server needs no other proof. Throws a StartError
 * if the socket's directory is no longer its own.
 */
export async function adoptPostmaster(
  clusterDir: string,
  owner: SystemUser | null,
  timeoutMs: number,
): Promise<ServerAddress | null> {
  // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for a server
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const running = await findPostmaster(clusterDir);
    // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for a server
    if (running === null || performance.now() > deadline) return null;
    if (running.isReady) {
      await requireOwnDir(running, owner);
      if (await answers(running.address)) return running.address;
    }
    await delay(100);
  }
}

/** Without its socket the server cannot be asked who uses it, so it is not ended either. */
async function requireOwnDir(
  { pid, address: { socketDir } }: Postmaster,
  owner: SystemUser | null,
): Promise<void> {
  if (socketDir === null || (await isPrivateDir(socketDir, owner))) return;
  // A server that is about to end has removed its directory.
  if (!isAlive(pid)) return;
  throw new StartError(
    `${socketDir}: expected the private directory of the database's socket, but it is missing ` +
      `or was replaced. Stop the service that uses it, end the server (kill ${pid}), and start ` +
      'again.',
  );
}

async function answers({ socketDir, port }: ServerAddress): Promise<boolean> {
  const place =
    socketDir === null ? { host: '127.0.0.1', port } : { path: socketPathIn(socketDir) };
  return isPostgres(await ask(place, sslRequest, { timeoutMs: 2_000 }));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

function readCommand(pid: number): string {
  try {
    if (process.platform === 'linux')
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  } catch {
    return '';
  }
}

/** Only part of the socket's name: each server has a directory of its own. */
export const socketPort = 5432;

const socketName = `.s.PGSQL.${socketPort}`;
const prefix = 'sensorium-socket-';
/** sun_path: 104 bytes on macOS, 108 on Linux, including the final zero (unix(4), unix(7)). */
const longestSocketPath = 103;
const longestBase = longestSocketPath - `/${prefix}XXXXXX/${socketName}`.length;
/** PostgreSQL splits a list of directories at commas; pg_ctl passes settings through a shell. */
const plainPath = /^\/[\w/.+@:-]*$/;

/**
 * Creates a new directory for a server's socket that only its user may enter, in the first of `bases` that is usable.
 * Its name is always new, so a directory that another user created is never taken for it. Throws a StartError if no
 * base is usable.
 */
export async function makeSocketDir(bases: string[], owner: SystemUser | null): Promise<string> {
  const tried = [...new Set(bases)];
  for (const base of tried) {
    const dir = await tryBase(base, owner);
    if (dir !== null) return dir;
  }
  throw new StartError(
    `No directory for the database's socket in ${tried.join(', ')}: expected one that ` +
      `PostgreSQL's user can reach, with a path of at most ${longestBase} bytes that contains ` +
      'only letters, digits and /._+@:-. Name one with TMPDIR.',
  );
}

/** The path that clients connect to. */
function socketPathIn(dir: string): string {
  return join(dir, socketName);
}

async function tryBase(base: string, owner: SystemUser | null): Promise<string | null> {
  const real = await realpath(base).catch(() => null);
  if (real === null || !plainPath.test(real) || real.length > longestBase) return null;
  if (await isAnybodysToChange(real)) return null;
  const dir = await mkdtemp(join(real, prefix)).catch(() => null);
  if (dir === null) return null;
  if (owner) await chown(dir, owner.uid, owner.gid);
  if ((owner === null || canWrite(owner, dir)) && (await takesSockets(dir))) return dir;
  await rmdir(dir);
  return null;
}

/** Without the sticky bit (which /tmp has) anybody could replace the directory. */
async function isAnybodysToChange(dir: string): Promise<boolean> {
  const { mode } = await stat(dir);
  return (mode & 0o002) !== 0 && (mode & 0o1000) === 0;
}

/** Some file systems, for example those of shared folders, do not support sockets. */
async function takesSockets(dir: string): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(socketPathIn(dir), () => server.close(() => resolve(true)));
  });
}

/**
 * Prepares the directory of a server that ended for the next one, under the same name, because clients know it. Throws
 * a StartError if something else has taken its place.
 */
export async function renewSocketDir(dir: string, owner: SystemUser | null): Promise<void> {
  const isNew = await mkdir(dir, { mode: 0o700 }).then(
    () => true,
    () => false,
  );
  if (isNew && owner) await chown(dir, owner.uid, owner.gid);
  if (!(await isPrivateDir(dir, owner)))
    throw new StartError(
      `${dir}: expected the private directory of the database's socket. Remove what is there.`,
    );
  await removeSocket(dir);
}

/** Whether this is a directory, and not a link to one, that only the server's user may enter. */
async function isPrivateDir(dir: string, owner: SystemUser | null): Promise<boolean> {
  const found = await lstat(dir).catch(() => null);
  const uid = owner?.uid ?? process.getuid?.();
  return found?.isDirectory() === true && found.uid === uid && (found.mode & 0o777) === 0o700;
}

/** Removes what a server left when it ended, and nothing else. */
export async function removeSocketDir(dir: string, owner: SystemUser | null): Promise<void> {
  if (!(await isPrivateDir(dir, owner))) return;
  await removeSocket(dir);
  await rmdir(dir).catch(() => undefined);
}

/** Removes from `base` the directories of servers that were killed. `kept` is the directory of the running server. */
export async function removeOtherSocketDirs(
  base: string,
  kept: string | null,
  owner: SystemUser | null,
): Promise<void> {
  for (const name of await readdir(base)) {
    const dir = join(base, name);
    if (!name.startsWith(prefix) || dir === kept) continue;
    const { kind } = await ask({ path: socketPathIn(dir) }, sslRequest, { timeoutMs: 1_000 });
    if (kind === 'failed') await removeSocketDir(dir, owner);
  }
}

/** The pid in a lock file may belong to another process by now: PostgreSQL would not start. */
async function removeSocket(dir: string): Promise<void> {
  for (const name of [socketName, `${socketName}.lock`]) await rm(join(dir, name), { force: true });
}

const megabytes = 2 ** 20;

/**
 * Settings of the embedded server. It is fully durable (fsync, synchronous_commit and full_page_writes keep
 * PostgreSQL's defaults), and sized for a machine that does other things too.
 */
export function embeddedSettings(): string[] {
  const sharedBuffersMb = Math.min(512, Math.max(32, Math.floor(totalmem() / megabytes / 8)));
  return [
    `shared_buffers=${sharedBuffersMb}MB`,
    'max_connections=120',
    'max_wal_size=2GB',
    'wal_compression=on',
    // All statements are short: compiling one would take longer than running it.
    'jit=off',
    'timezone=UTC',
    'log_timezone=UTC',
    // The client learns of errors in its statements; the log is about the server.
    'log_min_messages=log',
    'log_checkpoints=off',
    'log_min_error_statement=panic',
  ];
}

/**
 * `fast` ends the sessions and writes everything out; `immediate` leaves that to the next start. Resolves when no
 * server runs on the cluster. Rejects if one still does after the timeout.
 */
export async function stopCluster(
  programs: Programs,
  clusterDir: string,
  mode: 'fast' | 'immediate',
  timeoutSeconds: number,
): Promise<void> {
  const timeout = String(timeoutSeconds);
  const ask = () =>
    runProgram(programs, 'pg_ctl', [
      'stop', '--pgdata', clusterDir, '--mode', mode, '--wait', '--timeout', timeout, '--silent',
    ]); // prettier-ignore
  try {
    await ask().catch((error: unknown) => {
      // A Ctrl-C reached pg_ctl before it had a session of its own.
      if (error instanceof ProgramError && error.signal !== null) return ask();
      throw error;
    });
  } catch (error) {
    // pg_ctl also fails if the server ended before it was asked to, or just after the timeout.
    if ((await findPostmaster(clusterDir)) !== null) throw error;
  }
}

/**
 * The error for a second service on one data directory. It may pass if that process has ended: the server takes a
 * moment to notice, and longer on a busy machine. `heldBy` is "process 123", from the name of the lock's session.
 */
export function inUse(dataDir: string, heldBy: string): StartError {
  const pid = Number(/^process (\d+)$/.exec(heldBy)?.[1]);
  return new StartError(
    `DATA_DIR ${dataDir}: another Sensorium (${heldBy}) is using it. Stop that one, or give ` +
      'this one its own DATA_DIR and ports.',
    { mayPass: pid > 0 && !isAlive(pid) },
  );
}
