import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { readOrMakePrivateFile } from '../../private-file.ts';
import { createCluster } from './cluster.ts';
import type { Programs } from './programs.ts';

/** The service's own database in an embedded cluster. */
export const databaseName = 'sensorium';

export function passwordFileOf(dataDir: string): string {
  return join(dataDir, 'database-password');
}

/** The password of a data directory's database, made for one that is to be made. */
export function readOrMakePassword(dataDir: string): Promise<string> {
  return readOrMakePrivateFile(passwordFileOf(dataDir), () => randomBytes(24).toString('hex'));
}

/** An empty cluster as the embedded database has it: it sorts the same on every machine. */
export function createEmbeddedCluster(
  programs: Programs,
  clusterDir: string,
  password: string,
): Promise<void> {
  return createCluster(programs, clusterDir, {
    password,
    locale: ['--locale-provider=builtin', '--locale=C.UTF-8'],
  });
}
