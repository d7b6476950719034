import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPostmaster } from '../../src/db/embedded/cluster.ts';

export const temporaryPrefix = 'sensorium-test-';

/** Names the process that made a temporary directory. */
export const ownerFile = 'owner';

/** Ends the databases, and removes the directories, of test runs that were killed. */
export async function sweepAbandoned(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const dir = join(tmpdir(), name);
    if (!name.startsWith(temporaryPrefix) || !isAbandoned(dir)) continue;
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
