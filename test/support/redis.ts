import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import { findProgram } from './program.ts';
import { startServer, type Server } from './server.ts';

const program = findProgram('redis-server');

/** `describe.skipIf(!hasRedis)`: whether this machine has a redis-server. */
export const hasRedis = program !== null;

export type Redis = Server & { url: string };

/**
 * A redis-server of the test's own that keeps nothing on disk: `restart()` loses everything. `more`
 * gives settings of its own, as arguments; the last of one name counts.
 */
export async function startRedis(more: (port: number) => string[] = () => []): Promise<Redis> {
  if (program === null) throw new Error('No redis-server here.');
  const port = await findFreePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const server = await startServer(program, [...args, ...more(port)], port);
  return { ...server, url: `redis://127.0.0.1:${port}` };
}

/** A Redis Sentinel that watches nothing; it keeps its configuration in `dir`. */
export async function startSentinel(dir: string): Promise<Redis> {
  if (program === null) throw new Error('No redis-server here.');
  const port = await findFreePort();
  const file = join(dir, 'sentinel.conf');
  writeFileSync(file, `port ${port}\nbind 127.0.0.1\ndir ${dir}\n`);
  const server = await startServer(program, [file, '--sentinel'], port);
  return { ...server, url: `redis://127.0.0.1:${port}` };
}
