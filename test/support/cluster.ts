import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyRunning } from '../../src/db/backup/backup.ts';
import {
  connectionStringOf,
  createCluster,
  findFreePort,
  findOwner,
  startCluster,
  stopCluster,
  superuser,
} from '../../src/db/embedded/cluster.ts';
import {
  findPackagedPostgres,
  placePrograms,
  type Programs,
} from '../../src/db/embedded/programs.ts';
import { carelessDir, ownerFile, temporaryPrefix } from './sweep.ts';

const password = 'test';

/** Durability is off, because these clusters are removed after the run. */
const carelessSettings = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];
const commonSettings = [
  'max_connections=400',
  'shared_buffers=64MB',
  'jit=off',
  'max_wal_size=1GB',
];
const timescaleSettings = [
  'shared_preload_libraries=timescaledb',
  // Tests never use the network, and start the jobs they test themselves.
  'timescaledb.telemetry_level=off',
  'timescaledb.max_background_workers=0',
];

/** A PostgreSQL server that one test file or run owns. */
export type Cluster = {
  port: number;
  url(database?: string): string;
  dir: string;
  pid(): number;
  /** Starts it again after `halt` or a kill, on the same port. */
  start(): Promise<void>;
  halt(mode: 'fast' | 'immediate', timeoutSeconds?: number): Promise<void>;
  /** Stops it and removes its directory. */
  remove(): Promise<void>;
  /** Copies it while it runs, and makes the copy a standby with this name. */
  startStandby(name: string): Promise<Cluster>;
};

/**
 * Starts a server on an empty cluster. `durable` keeps fsync and synchronous_commit on, for tests that kill it.
 * `timescaledb` uses the system's PostgreSQL with the extension.
 */
export async function startThrowAwayCluster({
  timescaledb = false,
  durable = false,
  settings = [] as string[],
  dir = makeTemporaryDir(durable ? tmpdir() : carelessDir()),
} = {}): Promise<Cluster> {
  const programs = await testPrograms(timescaledb);
  if (programs === null) throw new Error('This machine has no TimescaleDB.');
  const clusterDir = join(dir, 'cluster');
  await mkdir(clusterDir, { mode: 0o700 });
  if (programs.owner) chownSync(clusterDir, programs.owner.uid, programs.owner.gid);
  await createCluster(programs, clusterDir, {
    password,
    locale: ['--locale', 'C.UTF-8', ...(durable ? [] : ['--no-sync'])],
  });
  return runCluster({
    programs,
    dir,
    port: await findFreePort(),
    settings: [
      ...commonSettings,
      ...(durable ? [] : carelessSettings),
      ...(timescaledb ? timescaleSettings : []),
      ...settings,
    ],
  });
}

type ClusterPlace = { programs: Programs; dir: string; port: number; settings: string[] };

async function runCluster(place: ClusterPlace): Promise<Cluster> {
  const { programs, dir, port, settings } = place;
  const clusterDir = join(dir, 'cluster');
  const address = { socketDir: null, port };
  const start = () => startCluster(programs, clusterDir, { settings, address, timeoutSeconds: 60 });
  const url = (database = 'postgres') =>
    connectionStringOf(address, { role: superuser, password }, database);
  await start();
  return {
    port,
    url,
    dir: clusterDir,
    pid: () => Number(readFileSync(join(clusterDir, 'postmaster.pid'), 'utf8').split('\n')[0]),
    start,
    halt: (mode, timeoutSeconds = 60) => stopCluster(programs, clusterDir, mode, timeoutSeconds),
    async remove() {
      if (existsSync(join(clusterDir, 'postmaster.pid')))
        await stopCluster(programs, clusterDir, 'immediate', 60).catch(() => undefined);
      rmSync(dir, { recursive: true, force: true });
    },
    startStandby: (name) => copyAsStandby(place, url(), name),
  };
}

async function copyAsStandby(primary: ClusterPlace, url: string, name: string): Promise<Cluster> {
  const dir = makeTemporaryDir();
  const clusterDir = join(dir, 'cluster');
  await mkdir(clusterDir, { mode: 0o700 });
  await copyRunning(url, join(primary.dir, 'cluster'), clusterDir);
  writeFileSync(join(clusterDir, 'standby.signal'), '');
  const following = `host=127.0.0.1 port=${primary.port} user=${superuser} password=${password} application_name=${name}`;
  appendFileSync(
    join(clusterDir, 'postgresql.auto.conf'),
    `\nprimary_conninfo = '${following}'\nsynchronous_standby_names = ''\n`,
  );
  const { owner } = primary.programs;
  if (owner) execFileSync('chown', ['-R', `${owner.uid}:${owner.gid}`, clusterDir]);
  return runCluster({ ...primary, dir, port: await findFreePort() });
}

/** A directory that PostgreSQL's user can traverse. */
export function makeTemporaryDir(parent = tmpdir()): string {
  const dir = mkdtempSync(join(parent, temporaryPrefix));
  chmodSync(dir, 0o755);
  writeFileSync(join(dir, ownerFile), String(process.pid));
  return dir;
}

/** The programs of the packaged PostgreSQL, or of a system's installation with TimescaleDB. */
async function testPrograms(timescaledb: boolean): Promise<Programs | null> {
  const owner = findOwner();
  if (!timescaledb) return placePrograms(findPackagedPostgres(), owner);
  const binDir = findTimescaleBinDir();
  return binDir === null ? null : { binDir, owner };
}

/** The newest PostgreSQL in Debian's place whose share directory has the extension; null if there is none. */
export function findTimescaleBinDir(): string | null {
  for (let version = 20; version >= 15; version -= 1) {
    const binDir = `/usr/lib/postgresql/${version}/bin`;
    if (!existsSync(join(binDir, 'pg_ctl'))) continue;
    const share = execFileSync(join(binDir, 'pg_config'), ['--sharedir'], { encoding: 'utf8' });
    if (existsSync(join(share.trim(), 'extension', 'timescaledb.control'))) return binDir;
  }
  return null;
}
