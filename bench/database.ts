import pg from 'pg';
import { migrate } from '../src/db/migrate.ts';
import { describeStorage, readStorage } from '../src/db/storage.ts';
import { findTimescaleBinDir, startThrowAwayCluster } from '../test/harness/cluster.ts';

/** The database server that all contenders share: durable, with TimescaleDB where there is one. */
export type BenchDatabase = {
  /** The postmaster; its children are the backends. */
  pid: number;
  description: string;
  settings: string[];
  /** A fresh database; `migrated` with the service's schema. */
  create: (name: string, migrated: boolean) => Promise<string>;
  remove: () => Promise<void>;
};

// What a machine of this size would be given; durability stays as PostgreSQL has it by default.
const settings = [
  'shared_buffers=1GB',
  'max_wal_size=8GB',
  'wal_compression=on',
  'checkpoint_timeout=15min',
];

const durability = ['fsync', 'synchronous_commit', 'full_page_writes'];

const silent = { info: () => undefined, warn: () => undefined };

export async function startBenchDatabase(): Promise<BenchDatabase> {
  const timescaledb = findTimescaleBinDir() !== null;
  const cluster = await startThrowAwayCluster({
    timescaledb,
    durable: true,
    settings: timescaledb ? [...settings, 'timescaledb.max_background_workers=8'] : settings,
  });
  const facts = await withClient(cluster.url(), async (client) => {
    const durable: string[] = [];
    for (const name of durability) {
      const { rows } = await client.query<Record<string, string>>(`show ${name}`);
      durable.push(`${name}=${rows[0]?.[name]}`);
    }
    return { durable, storage: await readStorage(client) };
  });
  if (facts.durable.some((setting) => !setting.endsWith('=on')))
    throw new Error(`The database must be durable: ${facts.durable.join(', ')}.`);
  let description = describeStorage(facts.storage);
  return {
    pid: cluster.pid(),
    get description() {
      return description;
    },
    settings: [...facts.durable, ...settings],
    async create(name, migrated) {
      await withClient(cluster.url(), (client) => client.query(`create database ${name}`));
      if (migrated)
        description = describeStorage(await migrate(cluster.url(name), { log: silent }));
      return cluster.url(name);
    },
    remove: () => cluster.remove(),
  };
}

export async function withClient<T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
