import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { createServer } from 'node:net';
import { platform } from 'node:process';

type ListeningPlace = { host: string; port: number; backlog: number };

/** Only there does the kernel share connections out among sockets of a port. */
const canShare = platform === 'linux';

/**
 * Listens with so many servers on one port; gives the port. libuv accepts one connection of a socket in each turn of its
 * loop, and a turn also reads from every connection that has something to read: so many sockets accept as many in a turn.
 * Where the kernel does not share a port, with the first server only. Port 0: any free one. Rejects when the address
 * cannot be had, or is another process's; those that listen already are closed then.
 */
export async function listenTogether(
  servers: readonly [Server, ...Server[]],
  { host, port, backlog }: ListeningPlace,
): Promise<number> {
  // A socket that shares its port would share that of another process too.
  if (canShare && port !== 0) await expectFree(host, port);
  const [first, ...further] = servers;
  const listenOn = async (server: Server, on: number) => {
    await once(server.listen({ host, port: on, backlog, reusePort: canShare }), 'listening');
  };
  await listenOn(first, port);
  const { port: had } = first.address() as AddressInfo;
  try {
    for (const server of canShare ? further : []) await listenOn(server, had);
  } catch (error) {
    for (const server of servers) if (server.listening) server.close();
    throw error;
  }
  return had;
}

async function expectFree(host: string, port: number): Promise<void> {
  const probe = createServer();
  await once(probe.listen({ host, port }), 'listening');
  await once(probe.close(), 'close');
}
