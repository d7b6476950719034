import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { connectionStringOf, type ServerAddress } from '../../src/db/embedded/address.ts';
import { readPostmasterFile } from '../../src/db/embedded/cluster.ts';
import { readSuperuser } from '../../src/db/embedded/secrets.ts';

/** Where the server of a data directory listens; null where none runs. Only looks. */
export async function findAddress(dataDir: string): Promise<ServerAddress | null> {
  const clusterDir = await realpath(join(dataDir, 'postgresql')).catch(() => null);
  const running = clusterDir === null ? null : await readPostmasterFile(clusterDir);
  return running?.address ?? null;
}

/** Connects as the superuser of an embedded database that runs, for what the service may not do. */
export async function superuserUrl(dataDir: string, database = 'sensorium'): Promise<string> {
  const address = await findAddress(dataDir);
  if (address === null) throw new Error(`No server runs on ${dataDir}.`);
  return connectionStringOf(address, await readSuperuser(dataDir), database);
}
