import {
  chmod,
  chown,
  copyFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { codeOf } from '../../lib/thrown.ts';
import { StartError } from '../../start-error.ts';
import {
  connectionStringOf,
  findCluster,
  findPostmaster,
  makeCluster,
} from '../embedded/cluster.ts';
import { checkVersion, readSuperuser } from '../embedded/enter.ts';
import { findPackagedPostgres, placePrograms, type SystemUser } from '../embedded/programs.ts';
import { createScramClient } from '../pg-driver.ts';

/**
 * Copies the embedded database of a data directory into a new directory, with the secret and the database's password.
 * Whoever has the backup can read everything. The service may run and write meanwhile.
 */
export async function backUp(dataDir: string, targetDir: string): Promise<BackupManifest> {
  const clusterDir = await realpath(join(dataDir, clusterName)).catch((cause: unknown) => {
    throw new StartError(`DATA_DIR ${dataDir}: holds no database.`, { cause });
  });
  return makeBackup(targetDir, async (dir) => {
    for (const file of privateNames) await copyPrivate(join(dataDir, file), join(dir, file));
    const { files, bytes } = await copyCluster(dataDir, clusterDir, join(dir, clusterName));
    const manifest: BackupManifest = {
      format: 1,
      // oxlint-disable-next-line no-restricted-globals -- a command: when the copy was made
      createdTs: Date.now(),
      postgresqlMajor: (await readFile(join(clusterDir, 'PG_VERSION'), 'utf8')).trim(),
      files,
      bytes,
    };
    await writeManifest(dir, manifest);
    return manifest;
  });
}

async function copyCluster(dataDir: string, clusterDir: string, to: string): Promise<Copied> {
  await mkdir(to, { mode: 0o700 });
  const running = await findPostmaster(clusterDir);
  if (running) {
    const superuser = await readSuperuser(dataDir);
    return copyRunning(connectionStringOf(running.address, superuser, 'postgres'), clusterDir, to);
  }
  const state = () => readFile(join(clusterDir, 'global', 'pg_control'));
  const before = await state();
  const files = await copyFiles(clusterDir, to);
  const log = await copyLog(clusterDir, to);
  if ((await findPostmaster(clusterDir)) !== null || !before.equals(await state()))
    throw new StartError('The service was started while its database was being copied: try again.');
  return { files: files.files + log.files, bytes: files.bytes + log.bytes };
}

/** Marks a backup as complete. It is written last. */
const BackupManifest = z.object({
  format: z.literal(1),
  createdTs: z.int(),
  postgresqlMajor: z.string(),
  files: z.int(),
  bytes: z.int(),
});
type BackupManifest = z.infer<typeof BackupManifest>;

/** The names, in a backup's directory, of the cluster and of the private files of the data directory. */
const clusterName = 'postgresql';
const privateNames = ['secret', 'database-password'] as const;

const name = 'backup.json';

async function writeManifest(dir: string, manifest: BackupManifest): Promise<void> {
  await writeFile(join(dir, name), `${JSON.stringify(manifest, null, 2)}\n`, { flush: true });
}

/** Throws a StartError for a directory that is no backup, or an interrupted one. */
async function readManifest(dir: string): Promise<BackupManifest> {
  await refuseLink(join(dir, name));
  try {
    return BackupManifest.parse(JSON.parse(await readFile(join(dir, name), 'utf8')));
  } catch (error) {
    throw new StartError(`${dir}: is not a complete backup (no readable ${name}).`, {
      cause: error,
    });
  }
}

/** Copies a file that only its owner may read. False if it does not exist: the secret may be configured elsewhere. */
export async function copyPrivate(from: string, to: string): Promise<boolean> {
  if (!(await exists(from))) return false;
  await copyFile(from, to);
  await chmod(to, 0o600);
  return true;
}

/**
 * Throws a StartError if `path` exists and is neither a file nor a directory. A restore may run as root, and a link in
 * a backup would make it read any file of this machine.
 */
export async function refuseLink(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null);
  if (found && !found.isFile() && !found.isDirectory()) throw linkRefused(path);
}

const linkRefused = (path: string): StartError =>
  new StartError(
    `${path}: is a link or a special file. A backup contains only files and directories; it is ` +
      'not copied.',
  );

/**
 * Restores a private file. An existing one must be equal: a different secret would invalidate every token in the
 * backup.
 */
export async function restorePrivate(from: string, to: string): Promise<boolean> {
  await refuseLink(from);
  const [wanted, there] = await Promise.all([readIfThere(from), readIfThere(to)]);
  if (wanted === null) return false;
  if (there !== null && !there.equals(wanted))
    throw new StartError(`${to}: already exists and differs from the backup's. Move it away.`);
  return copyPrivate(from, to);
}

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function readIfThere(file: string): Promise<Buffer | null> {
  return (await exists(file)) ? readFile(file) : null;
}

/**
 * Calls `fill` with a new directory that nobody else can read. It has another name until it is complete, so an
 * interrupted backup is never taken for a complete one.
 */
export async function makeBackup<T>(
  targetDir: string,
  fill: (dir: string) => Promise<T>,
): Promise<T> {
  if (await exists(targetDir))
    throw new StartError(`${targetDir}: already exists; a backup needs a directory of its own.`);
  const unfinished = `${targetDir}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(dirname(targetDir), { recursive: true });
  await mkdir(unfinished, { mode: 0o700 });
  try {
    const result = await fill(unfinished);
    await rename(unfinished, targetDir);
    return result;
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Copies the cluster of a running server as PostgreSQL's documentation describes (25.3.4): first the files in whatever
 * state they are, then the log of everything written meanwhile, which makes them consistent when the copy is started. A
 * replication slot of this session keeps the server from recycling that log.
 */
export async function copyRunning(
  connectionString: string,
  from: string,
  to: string,
): Promise<Copied> {
  const client = createScramClient({ connectionString, application_name: 'sensorium backup' });
  await client.connect();
  try {
    await client.query(
      `select pg_create_physical_replication_slot('sensorium_backup_' || pg_backend_pid(), true, true)`,
    );
    const started = await client.query<{ first: string }>(
      `select pg_walfile_name(pg_backup_start('sensorium', fast => true)) as first`,
    );
    const files = await copyFiles(from, to);
    const stopped = await client.query<{ last: string; label: string; tablespaces: string }>(
      `select pg_walfile_name(lsn) as last, labelfile as label, spcmapfile as tablespaces
         from pg_backup_stop(wait_for_archive => false)`,
    );
    const { first } = started.rows[0] ?? {};
    const { last, label, tablespaces } = stopped.rows[0] ?? {};
    if (!first || !last || !label) throw new Error('The database did not say what to copy.');
    if (tablespaces?.trim()) throw new Error('The database has tablespaces outside its directory.');
    await writeFile(join(to, 'backup_label'), label, { flush: true });
    const log = await copyLog(from, to, { first, last });
    return { files: files.files + log.files + 1, bytes: files.bytes + log.bytes + label.length };
  } finally {
    await client.end();
  }
}

/** Files that a copy of a running cluster omits; PostgreSQL's documentation, 25.3.4. */
const leftOut = [
  /^postmaster\.(pid|opts)$/,
  /^start\.log$/,
  // These directories must exist and be empty.
  /^(pg_dynshmem|pg_notify|pg_replslot|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\/./,
  /(^|\/)pgsql_tmp/,
  /(^|\/)pg_internal\.init/,
];

type Copied = { files: number; bytes: number };

/**
 * Copies a cluster's files except its write-ahead log (`pg_wal`). While a server runs, files appear, vanish and change.
 * Vanished ones are not needed, and the log repairs changed ones. Throws a StartError for a link.
 */
async function copyFiles(from: string, to: string): Promise<Copied> {
  const copied = { files: 0, bytes: 0 };
  await refuseLink(from);
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name).slice(from.length + 1);
    if (leftOut.some((pattern) => pattern.test(path))) continue;
    if (!entry.isFile() && !entry.isDirectory()) throw linkRefused(join(from, path));
    if (entry.isDirectory()) {
      await mkdir(join(to, path), { recursive: true, mode: 0o700 });
    } else if (!path.startsWith('pg_wal/')) {
      await copyOne(join(from, path), join(to, path), copied);
    }
  }
  return copied;
}

/** Copies the log's segments between these two names; all of them without `bounds`. */
async function copyLog(
  from: string,
  to: string,
  bounds?: { first: string; last: string },
): Promise<Copied> {
  const copied = { files: 0, bytes: 0 };
  for (const name of await readdir(join(from, 'pg_wal'))) {
    // Segments and, after a restore, histories of timelines.
    if (!/^[0-9A-F]{24}$|^[0-9A-F]{8}\.history$/.test(name)) continue;
    const wanted = !bounds || name.includes('.') || (name >= bounds.first && name <= bounds.last);
    if (wanted) await copyOne(join(from, 'pg_wal', name), join(to, 'pg_wal', name), copied);
  }
  return copied;
}

async function copyOne(from: string, to: string, copied: Copied): Promise<void> {
  try {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    await copyFile(from, to);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  copied.files += 1;
  copied.bytes += (await stat(to)).size;
}

/**
 * Restores a backup into a data directory that has no database yet. The next start of the service recovers it to the
 * moment at which the backup ended. Throws a StartError for a problem that the user can fix.
 */
export async function restore(backupDir: string, dataDir: string): Promise<BackupManifest> {
  const manifest = await readManifest(backupDir);
  const { clusterDir, owner } = await findCluster(dataDir);
  if (clusterDir !== null)
    throw new StartError(
      `DATA_DIR ${dataDir}: holds a database already. Move it away, or choose another DATA_DIR.`,
    );
  const source = join(backupDir, clusterName);
  await refuseLink(source);
  await refuseLink(join(source, 'PG_VERSION'));
  const programs = await placePrograms(findPackagedPostgres(), owner);
  await checkVersion({ programs, clusterDir: source });
  for (const name of privateNames) {
    await restorePrivate(join(backupDir, name), join(dataDir, name));
  }
  await makeCluster(dataDir, owner, async (dir) => {
    const files = await copyFiles(source, dir);
    const log = await copyLog(source, dir);
    if (files.files + log.files !== manifest.files || files.bytes + log.bytes !== manifest.bytes)
      throw new StartError(`${backupDir}: files are missing or truncated; nothing was restored.`);
    await giveTo(dir, owner);
  });
  return manifest;
}

async function giveTo(dir: string, owner: SystemUser | null): Promise<void> {
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    await chmod(path, entry.isDirectory() ? 0o700 : 0o600);
    if (owner) await chown(path, owner.uid, owner.gid);
  }
}
