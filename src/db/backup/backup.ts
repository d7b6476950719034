import { copyFile, mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf } from '../../lib/thrown.ts';
import { linkRefused, refuseLink } from './private-files.ts';

/** What a copy of a running cluster leaves out; PostgreSQL's documentation, 25.3.4. */
const leftOut = [
  /^postmaster\.(pid|opts)$/,
  /^start\.log$/,
  // The directories must be there, and empty.
  /^(pg_dynshmem|pg_notify|pg_replslot|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\/./,
  /(^|\/)pgsql_tmp/,
  /(^|\/)pg_internal\.init/,
];

export type Copied = { files: number; bytes: number };

/**
 * Copies a cluster's files except its write-ahead log (`pg_wal`). While a server runs, files appear,
 * vanish and change: vanished ones are not needed, and the log repairs changed ones. Throws a StartError where
 * there is a link among them.
 */
export async function copyFiles(from: string, to: string): Promise<Copied> {
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

/** Copies the segments of the log with these names at most; all of them when none are named. */
export async function copyLog(
  from: string,
  to: string,
  bounds?: { first: string; last: string },
): Promise<Copied> {
  const copied = { files: 0, bytes: 0 };
  for (const name of await readdir(join(from, 'pg_wal'))) {
    // Segments and, after a restore, the histories of timelines.
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
