import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from 'pg';
import { connectionStringOf, readPostmasterFile } from '../../src/db/embedded/cluster.ts';
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';
import { runOn } from '../harness/template.ts';

/** The database of an installation. */
export type InstalledDatabase = {
  /** Rejects where its server does not run. */
  run<T>(work: (client: Client) => Promise<T>): Promise<T>;
  /** The same while no program runs: an embedded server is started for the while. */
  runAlone<T>(work: (client: Client) => Promise<T>): Promise<T>;
  /** Ends the server, where it is one that a killed program has left. */
  stop(): Promise<void>;
};

const log = { info: () => undefined, warn: () => undefined };

/** The embedded database of a data directory. */
export function embeddedIn(dataDir: string): InstalledDatabase {
  const start = () => startEmbeddedDatabase({ dataDir, log });
  return {
    async run(work) {
      const url = await findRunning(dataDir);
      if (url === null) throw new Error(`No server runs on ${dataDir}.`);
      return runOn(url, work);
    },
    async runAlone(work) {
      const database = await start();
      try {
        return await runOn(database.connectionString, work);
      } finally {
        await database.stop();
      }
    },
    async stop() {
      if ((await findRunning(dataDir)) !== null) await (await start()).stop();
    },
  };
}

/** A database of its own on a server that always runs. */
export function databaseAt(url: string): InstalledDatabase {
  const run: InstalledDatabase['run'] = (work) => runOn(url, work);
  return { run, runAlone: run, stop: async () => undefined };
}

/** How to connect to the server that runs on a data directory; null where none does. Only looks. */
async function findRunning(dataDir: string): Promise<string | null> {
  const running = await readPostmasterFile(join(dataDir, 'postgresql'));
  if (running === null) return null;
  const password = (await readFile(join(dataDir, 'database-password'), 'utf8')).trim();
  return connectionStringOf(running.port, password, 'sensorium');
}
