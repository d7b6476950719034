import { runner } from 'node-pg-migrate';
import { offerTimescale } from '../../src/db/storage.ts';
import { runOn } from '../support/template.ts';

export const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** Makes an empty database what an earlier version had: as its first so many migrations made it. */
export async function migrateTo(url: string, count: number): Promise<void> {
  await runOn(url, async (client) => {
    await offerTimescale(client, silent);
    await runner({
      dbClient: client,
      dir: new URL('../../src/db/migrations/', import.meta.url).pathname,
      migrationsTable: 'migration',
      direction: 'up',
      count,
      logger: silent,
    });
  });
}
