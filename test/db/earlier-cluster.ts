import { mkdirSync } from 'node:fs';
import {
  connectionStringOf,
  embeddedSettings,
  findCluster,
  findFreePort,
  makeCluster,
  startCluster,
  stopCluster,
} from '../../src/db/embedded/cluster.ts';
import {
  createEmbeddedCluster,
  readOrMakeSuperuserPassword,
  readSuperuser,
} from '../../src/db/embedded/enter.ts';
import { findPackagedPostgres, placePrograms } from '../../src/db/embedded/programs.ts';
import { migrateWorker } from '../../src/notifications/old-jobs.ts';
import { runOn } from '../support/template.ts';
import { migrate } from '../../src/db/migrate.ts';
import { migrateTo, silent } from './earlier.ts';

/** What versions made in a database: the first had all tables in `public`. */
const fill = {
  '0.1.0': (url: string) => migrateTo(url, 4),
  '0.2.0': (url: string) => migrate(url, { log: silent, version: '0.2.0', steps: 12 }),
};

export type EarlierServer = {
  port: number;
  /** Of the superuser, who did everything then. */
  url(database: string): string;
  stop(): Promise<void>;
};

/**
 * The embedded database as a version before 0.3.0 made it and a killed service of it left it: the server runs and
 * listens at a port, everything is the superuser's, and there is no other role.
 */
export async function leaveEarlierServer(
  dataDir: string,
  version: keyof typeof fill,
): Promise<EarlierServer> {
  mkdirSync(dataDir);
  const { owner } = await findCluster(dataDir);
  const programs = await placePrograms(findPackagedPostgres(), owner);
  const password = await readOrMakeSuperuserPassword(dataDir);
  const { clusterDir } = await makeCluster(dataDir, owner, (dir) =>
    createEmbeddedCluster(programs, dir, password),
  );
  const address = { socketDir: null, port: await findFreePort() };
  const settings = embeddedSettings();
  await startCluster(programs, clusterDir, { settings, address, timeoutSeconds: 60 });
  const superuser = await readSuperuser(dataDir);
  const url = (database: string) => connectionStringOf(address, superuser, database);
  await runOn(url('postgres'), (client) => client.query('create database sensorium'));
  await fill[version](url('sensorium'));
  await migrateWorker(url('sensorium'), silent);
  return {
    port: address.port,
    url,
    stop: () => stopCluster(programs, clusterDir, 'fast', 60),
  };
}
