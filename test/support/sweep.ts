import { existsSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPostmaster } from '../../src/db/embedded/cluster.ts';

export const temporaryPrefix = 'sensorium-test-';

/** Names the process that created a temporary directory. */
export const ownerFile = 'owner';

const memoryDir = '/dev/shm';
/** The databases of a run take some hundred megabytes, and several runs may be in progress. */
const neededBytes = 4 * 1_073_741_824;

/**
 * A directory for files that need not survive a crash of the machine: in memory if there is space, where cloning a
 * database takes a tenth of the processor time that it takes on a disk.
 */
export function carelessDir(): string {
  if (!existsSync(memoryDir)) return tmpdir();
  const { bavail, bsize } = statfsSync(memoryDir);
  return bavail * bsize < neededBytes ? tmpdir() : memoryDir;
}

/** Stops the databases, and removes the directories, of test runs that were killed. */
export async function sweepAbandoned(): Promise<void> {
  const roots = [tmpdir(), memoryDir].filter((root) => existsSync(root));
  const dirs = roots.flatMap((root) =>
    readdirSync(root)
      .filter((name) => name.startsWith(temporaryPrefix))
      .map((name) => join(root, name)),
  );
  for (const dir of dirs) {
    if (!isAbandoned(dir)) continue;
    const postmaster = await findPostmaster(join(dir, 'cluster'));
    if (postmaster) process.kill(postmaster.pid, 'SIGQUIT');
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

function isAbandoned(dir: string): boolean {
  try {
    process.kill(Number(readFileSync(join(dir, ownerFile), 'utf8')), 0);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
}
