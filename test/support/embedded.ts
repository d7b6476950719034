import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import {
  connectionStringOf,
  readPostmasterFile,
  type ServerAddress,
} from '../../src/db/embedded/cluster.ts';
import { readSuperuser } from '../../src/db/embedded/enter.ts';

/** The address of a data directory's server; null if none runs. Changes nothing. */
export async function findAddress(dataDir: string): Promise<ServerAddress | null> {
  const clusterDir = await realpath(join(dataDir, 'postgresql')).catch(() => null);
  const running = clusterDir === null ? null : await readPostmasterFile(clusterDir);
  return running?.address ?? null;
}

/** The URL of a running embedded database for its superuser, for what the service's role may not do. */
export async function superuserUrl(dataDir: string, database = 'sensorium'): Promise<string> {
  const address = await findAddress(dataDir);
  if (address === null) throw new Error(`No server runs on ${dataDir}.`);
  return connectionStringOf(address, await readSuperuser(dataDir), database);
}
