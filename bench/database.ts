import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { migrate } from '../src/db/migrate.ts';
import { findCurrentSchema } from '../src/db/schema-state.ts';
import { describeStorage } from '../src/db/storage.ts';
import { findTimescaleBinDir, startThrowAwayCluster } from '../test/support/cluster.ts';
import { openClient } from '../test/support/template.ts';

/** The database server that all contenders share: durable, with TimescaleDB if it is installed. */
export type BenchDatabase = {
  /** The postmaster, whose children are the backends. */
  pid: number;
  description: string;
  settings: string[];
  /** A fresh database with the service's schema. */
  create: (name: string) => Promise<string>;
  /** An empty database, which a service of any version migrates when it starts. */
  createEmpty: (name: string) => Promise<string>;
  drop: (name: string) => Promise<void>;
  remove: () => Promise<void>;
};

// Tuned for a machine of this size. Durability settings keep PostgreSQL's defaults.
const settings = [
  'shared_buffers=1GB',
  'max_wal_size=8GB',
  'min_wal_size=4GB',
  'wal_compression=on',
  'checkpoint_timeout=15min',
];

const durability = ['fsync', 'synchronous_commit', 'full_page_writes'];

const silent = { info: () => undefined, warn: () => undefined };

/** `usedLogSegments`: WAL segments of 16 MB to recycle, so that no new one is created during a measurement. */
export async function startBenchDatabase(usedLogSegments = 0): Promise<BenchDatabase> {
  const timescaledb = findTimescaleBinDir() !== null;
  const cluster = await startThrowAwayCluster({
    timescaledb,
    durable: true,
    settings: timescaledb ? [...settings, 'timescaledb.max_background_workers=8'] : settings,
  });
  const run = (sql: string) => withClient(cluster.url(), (client) => client.query(sql));
  const tell = (database: string, word: 'start' | 'stop') =>
    withClient(cluster.url(database), (client) =>
      client.query(`select _timescaledb_functions.${word}_background_workers()`),
    );
  await run('create database prepared');
  const storage = await migrate(cluster.url('prepared'), { log: silent });
  // A template must have no connections, so background workers are stopped here and started in each copy.
  if (timescaledb) await tell('prepared', 'stop');
  await run('alter database prepared allow_connections false');
  await withClient(cluster.url(), (client) => useLog(client, usedLogSegments));
  return {
    pid: cluster.pid(),
    description: describeStorage(storage),
    settings: [...(await withClient(cluster.url(), requireDurability)), ...settings],
    async create(name) {
      await patiently(() => run(`create database ${name} template prepared`));
      if (timescaledb) await tell(name, 'start');
      return cluster.url(name);
    },
    async createEmpty(name) {
      await run(`create database ${name}`);
      return cluster.url(name);
    },
    drop: async (name) => void (await run(`drop database ${name} with (force)`)),
    remove: () => cluster.remove(),
  };
}

/**
 * Fills the WAL as in a server that has run for a while, where a checkpoint keeps old segments for reuse. A new server
 * has to write each segment first, 16 MB of zeros, and a commit waits some 60 ms for that.
 */
async function useLog(client: pg.Client, segments: number): Promise<void> {
  for (let left = segments; left > 0; left -= 1)
    await client.query('select pg_current_xact_id(); select pg_switch_wal()');
  if (segments > 0) await client.query('checkpoint');
}

/** Retries while TimescaleDB's launcher is connected to the template. */
async function patiently(attempt: () => Promise<unknown>): Promise<void> {
  for (let left = 10; ; left -= 1) {
    try {
      await attempt();
      return;
    } catch (error) {
      const inUse = error instanceof Error && 'code' in error && error.code === '55006';
      if (!inUse || left === 0) throw error;
      await delay(100);
    }
  }
}

/** Throws if the server is less durable than users are promised. */
async function requireDurability(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ setting: string }>(
    `select name || '=' || setting as setting from pg_settings where name = any($1) order by name`,
    [durability],
  );
  const found = rows.map(({ setting }) => setting);
  if (found.some((setting) => !setting.endsWith('=on')))
    throw new Error(`The database must be durable: ${found.join(', ')}.`);
  return found;
}

/** The schema with the service's tables. */
export async function schemaOf(url: string): Promise<string> {
  const current = await withClient(url, findCurrentSchema);
  if (current === null) throw new Error('This database has no tables of the service.');
  return current.name;
}

export async function withClient<T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = openClient(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
