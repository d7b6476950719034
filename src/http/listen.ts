import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer, type AddressInfo, type Server as NetServer } from 'node:net';
import { platform } from 'node:process';

/**
 * Connections that wait to be accepted; the kernel may hold fewer (`net.core.somaxconn`). Beyond it the
 * first packet is dropped, and who comes waits for a second or more: a burst of one client's must not do that.
 */
const backlog = 4_096;

/**
 * libuv accepts one connection of a socket in each turn of its loop, and a turn also reads from every connection that
 * has something to read. With hundreds of busy connections a new one would wait for seconds behind those of one
 * client's burst: so many sockets on the port accept as many in a turn.
 */
const sockets = 16;

/** Only there does the kernel share connections out among sockets of a port. */
const canShare = platform === 'linux';

export type HttpListener = {
  port: number;
  /** Accepts no more; resolves when all connections have ended. */
  close(): Promise<void>;
};

/** Rejects when the address cannot be had. Port 0: any free one. */
export async function listen(server: Server, host: string, port: number): Promise<HttpListener> {
  // A socket that shares its port would share that of another process too.
  if (canShare && port !== 0) await expectFree(host, port);
  await listenOn(server, { host, port, reusePort: canShare });
  const servers: NetServer[] = [server];
  const close = async (): Promise<void> => {
    await Promise.all(servers.map((each) => once(each.close(), 'close')));
  };
  const { port: had } = server.address() as AddressInfo;
  try {
    while (canShare && servers.length < sockets) {
      const further = createFurther(server);
      await listenOn(further, { host, port: had, reusePort: true });
      servers.push(further);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { port: had, close };
}

/** As node:http opens its own: half open, and without delay. */
const createFurther = (server: Server): NetServer =>
  createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    server.emit('connection', socket),
  );

async function expectFree(host: string, port: number): Promise<void> {
  const probe = createServer();
  await listenOn(probe, { host, port, reusePort: false });
  await once(probe.close(), 'close');
}

type Address = { host: string; port: number; reusePort: boolean };

async function listenOn(server: NetServer, address: Address): Promise<void> {
  await once(server.listen({ ...address, backlog }), 'listening');
}
