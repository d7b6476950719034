import type { Client } from 'pg';
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';
import { findAddress, superuserUrl } from '../support/embedded.ts';
import { runOn } from '../support/template.ts';

/** The database of an installation. */
export type InstalledDatabase = {
  /** Rejects if its server is not running. */
  run<T>(work: (client: Client) => Promise<T>): Promise<T>;
  /** The same while no program runs; starts an embedded server for the time being. */
  runAlone<T>(work: (client: Client) => Promise<T>): Promise<T>;
  /** Stops the server if a killed program has left it running. */
  stop(): Promise<void>;
};

const log = { info: () => undefined, warn: () => undefined };

/** The embedded database of a data directory, for its superuser. */
export function embeddedIn(dataDir: string): InstalledDatabase {
  const start = () => startEmbeddedDatabase({ dataDir, log });
  return {
    async run(work) {
      return runOn(await superuserUrl(dataDir), work);
    },
    async runAlone(work) {
      const database = await start();
      try {
        return await runOn(await superuserUrl(dataDir), work);
      } finally {
        await database.stop();
      }
    },
    async stop() {
      if ((await findAddress(dataDir)) !== null) await (await start()).stop();
    },
  };
}

/** A database of its own on a server that always runs. */
export function databaseAt(url: string): InstalledDatabase {
  const run: InstalledDatabase['run'] = (work) => runOn(url, work);
  return { run, runAlone: run, stop: async () => undefined };
}
