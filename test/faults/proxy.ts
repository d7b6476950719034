import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A TCP proxy between two programs, for tests that cut or stall the connection. */
export type Proxy = {
  port: number;
  /** Breaks every connection and refuses new ones. */
  cut(): void;
  /** Keeps connections and carries nothing: what a dead cable looks like. */
  stall(): void;
  /** Loses what comes back from the target from now on, and carries what goes there. */
  deafen(): void;
  heal(): void;
  close(): Promise<void>;
};

type Mode = 'open' | 'cut' | 'stalled' | 'deaf';

export async function startProxy(targetPort: number): Promise<Proxy> {
  let mode: Mode = 'open';
  const pairs = new Set<[Socket, Socket]>();
  const server = createServer((client) => {
    if (mode === 'cut') return void client.resetAndDestroy();
    const target = connect(targetPort, '127.0.0.1');
    const pair: [Socket, Socket] = [client, target];
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end).setNoDelay();
    client.on('data', (chunk) => target.write(chunk));
    target.on('data', (chunk) => mode !== 'deaf' && client.write(chunk));
    if (mode === 'stalled') pair.forEach((socket) => socket.pause());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const each = (act: (socket: Socket) => void) => pairs.forEach((pair) => pair.forEach(act));
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      mode = 'cut';
      each((socket) => socket.destroy());
    },
    stall() {
      mode = 'stalled';
      each((socket) => socket.pause());
    },
    deafen: () => void (mode = 'deaf'),
    heal() {
      mode = 'open';
      each((socket) => socket.resume());
    },
    async close() {
      each((socket) => socket.destroy());
      server.close();
      await once(server, 'close');
    },
  };
}
