import { findFreePort } from '../../src/db/embedded/cluster.ts';
import { findProgram } from './program.ts';
import { startServer, type Server } from './server.ts';

const program = findProgram('redis-server');

/** `describe.skipIf(!hasRedis)`: whether this machine has a redis-server. */
export const hasRedis = program !== null;

export type Redis = Server & { url: string };

/** A redis-server of the test's own that keeps nothing on disk: `restart()` loses everything. */
export async function startRedis(): Promise<Redis> {
  if (program === null) throw new Error('No redis-server here.');
  const port = await findFreePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  return { ...(await startServer(program, args, port)), url: `redis://127.0.0.1:${port}` };
}
