import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A TCP proxy between two programs, for tests that cut or stall the connection. */
export type Proxy = {
  port: number;
  /** Breaks every connection and refuses new ones. With `at`: once this is sent, which is not carried. */
  cut(at?: string): void;
  isCut(): boolean;
  /** Keeps connections and carries nothing, like an unplugged cable. */
  stall(): void;
  /** Still carries what goes to the target, but loses answers from now on. With `at`: from when this is next sent. */
  deafen(at?: string): void;
  heal(): void;
  /** New connections go to this port. */
  leadTo(port: number): void;
  /** Bytes of TCP payload that both sides have sent so far. */
  carried(): { toTarget: number; fromTarget: number };
  close(): Promise<void>;
};

type Mode = 'open' | 'cut' | 'stalled' | 'deaf';

export async function startProxy(firstPort: number): Promise<Proxy> {
  let targetPort = firstPort;
  let mode: Mode = 'open';
  const pairs = new Set<[Socket, Socket]>();
  let change: { mode: Mode; at: string } | null = null;
  const bytes = { toTarget: 0, fromTarget: 0 };
  const each = (act: (socket: Socket) => void) => pairs.forEach((pair) => pair.forEach(act));
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
    client.on('data', (chunk: Buffer) => {
      bytes.toTarget += chunk.length;
      if (change && chunk.includes(change.at)) mode = change.mode;
      if (mode === 'cut') each((socket) => socket.destroy());
      else target.write(chunk);
    });
    target.on('data', (chunk: Buffer) => {
      bytes.fromTarget += chunk.length;
      if (mode !== 'deaf') client.write(chunk);
    });
    if (mode === 'stalled') pair.forEach((socket) => socket.pause());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    cut(at) {
      if (at !== undefined) return void (change = { mode: 'cut', at });
      mode = 'cut';
      each((socket) => socket.destroy());
    },
    isCut: () => mode === 'cut',
    stall() {
      mode = 'stalled';
      each((socket) => socket.pause());
    },
    deafen(at) {
      if (at === undefined) mode = 'deaf';
      else change = { mode: 'deaf', at };
    },
    heal() {
      mode = 'open';
      change = null;
      each((socket) => socket.resume());
    },
    leadTo: (port) => void (targetPort = port),
    carried: () => ({ ...bytes }),
    async close() {
      each((socket) => socket.destroy());
      server.close();
      await once(server, 'close');
    },
  };
}
