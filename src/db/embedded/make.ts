import { createCluster } from './cluster.ts';
import type { Programs } from './programs.ts';

/** The service's own database in an embedded cluster. */
export const databaseName = 'sensorium';

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
