import type { Server } from 'node:net';

/** Tells the bench, by one line of JSON, where to find this program. */
export function announce(server: Server): void {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('Not listening.');
  console.log(JSON.stringify({ ready: true, port: address.port }));
}
