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
import { makeJobTables } from '../support/old-jobs.ts';
import { runOn } from '../support/template.ts';
import { migrate } from '../../src/db/migrate.ts';
import { silent } from './earlier.ts';

export type EarlierServer = {
  port: number;
  /** For the superuser, whom everything used then. */
  url(database: string): string;
  stop(): Promise<void>;
};

/**
 * Leaves the embedded database as a version before 0.3.0 does that used this version's schema and was killed: the
 * server runs and listens at a port, everything belongs to the superuser, and there is no other role.
 */
export async function leaveEarlierServer(dataDir: string): Promise<EarlierServer> {
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
  await migrate(url('sensorium'), { log: silent });
  await makeJobTables(url('sensorium'));
  return {
    port: address.port,
    url,
    stop: () => stopCluster(programs, clusterDir, 'fast', 60),
  };
}
