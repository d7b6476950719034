import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer } from 'node:net';
import { listenTogether } from '../lib/listen-together.ts';

/** A turn of the event loop accepts as many connections: those of one client's burst must not keep others waiting. */
const sockets = 16;
/** Connections that wait for each of them; the kernel may hold fewer (`net.core.somaxconn`). */
const backlog = 256;

export type HttpListener = {
  port: number;
  /** Accepts no more; resolves when all connections have ended. */
  close(): Promise<void>;
};

/** Rejects when the address cannot be had. Port 0: any free one. */
export async function listen(server: Server, host: string, port: number): Promise<HttpListener> {
  const further = Array.from({ length: sockets - 1 }, () => createFurther(server));
  const had = await listenTogether([server, ...further], { host, port, backlog });
  const listening = [server, ...further].filter((each) => each.listening);
  return {
    port: had,
    close: async () => {
      await Promise.all(listening.map((each) => once(each.close(), 'close')));
    },
  };
}

/** As node:http opens its own: half open, and without delay. */
const createFurther = (server: Server) =>
  createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    server.emit('connection', socket),
  );
