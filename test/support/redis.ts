import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis as Client } from 'ioredis';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import { findProgram } from './program.ts';
import { startServer, type Server } from './server.ts';

const program = findProgram('redis-server');

/** `describe.skipIf(!hasRedis)`: whether this machine has a redis-server. */
export const hasRedis = program !== null;

export type Redis = Server & { url: string };

/**
 * A redis-server of the test's own that keeps nothing on disk: `restart()` loses everything. `more`: further
 * settings, as arguments; the last one of a name counts.
 */
export async function startRedis(more: (port: number) => string[] = () => []): Promise<Redis> {
  if (program === null) throw new Error('No redis-server here.');
  const port = await findFreePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const server = await startServer(program, [...args, ...more(port)], port);
  return { ...server, url: `redis://127.0.0.1:${port}` };
}

const given = process.env['TEST_REDIS_URL'];

/** `describe.skipIf(!canOpenRedis)`: whether there is a Redis for tests that only use it. */
export const canOpenRedis = given !== undefined || hasRedis;

/** An empty Redis for a test that neither stops nor configures it. */
export type OpenRedis = { url: string; close(): Promise<void> };

/** A database of the server that TEST_REDIS_URL names, emptied first; otherwise a server of the test's own. */
export async function openRedis(): Promise<OpenRedis> {
  if (given === undefined) {
    const server = await startRedis();
    return { url: server.url, close: () => server.kill() };
  }
  const url = new URL(given);
  const client = new Client(given);
  // Files that run side by side use different databases; the first database has the count.
  url.pathname = `/${1 + ((await client.incr('sensorium:test:databases')) % 15)}`;
  await client.select(Number(url.pathname.slice(1)));
  await client.flushdb();
  client.disconnect();
  return { url: url.href, close: async () => undefined };
}

/** A Redis Sentinel without a master to watch. It rewrites its configuration in `dir`. */
export async function startSentinel(dir: string): Promise<Redis> {
  if (program === null) throw new Error('No redis-server here.');
  const port = await findFreePort();
  const file = join(dir, 'sentinel.conf');
  writeFileSync(file, `port ${port}\nbind 127.0.0.1\ndir ${dir}\n`);
  const server = await startServer(program, [file, '--sentinel'], port);
  return { ...server, url: `redis://127.0.0.1:${port}` };
}
