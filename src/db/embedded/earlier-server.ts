import type { ServerAddress } from './address.ts';
import { lockAsSuperuser } from './enter.ts';
import { inUse } from './in-use.ts';
import type { Programs } from './programs.ts';
import { stopCluster } from './stop-cluster.ts';

/** Whether a version before 0.3.0 started it. Node knows no Unix sockets on Windows. */
export function isEarlier({ socketDir }: ServerAddress): boolean {
  return socketDir === null && process.platform !== 'win32';
}

/**
 * Ends the server that a killed service of an earlier version left: it listens at a port, which
 * another user can take when it crashes. Throws a StartError where a service still uses it.
 */
export async function endEarlierServer(
  { programs, clusterDir, dataDir }: { programs: Programs; clusterDir: string; dataDir: string },
  address: ServerAddress,
): Promise<void> {
  const { held } = await lockAsSuperuser(dataDir, address);
  if (held.heldBy !== null) throw inUse(dataDir, held.heldBy);
  await stopCluster(programs, clusterDir, 'fast', 60).catch(() =>
    stopCluster(programs, clusterDir, 'immediate', 10),
  );
}
