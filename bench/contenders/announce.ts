import type { Server } from 'node:net';

/** Tells the bench, in one line of JSON, where this program listens. */
export function announce(server: Server): void {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('Not listening.');
  console.log(JSON.stringify({ ready: true, port: address.port }));
}
