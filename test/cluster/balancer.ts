import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A balancer in front of several connectors: TCP to one after the other, with the PROXY protocol. */
export type Balancer = {
  port: number;
  /** Where it connects from; nobody else does. */
  address: string;
  /** Ports behind it; it skips those that refuse. */
  targets: number[];
  /** Connections to a target. */
  count(target: number): number;
  /**
   * Drops the devices' side of every connection and leaves the other side open, as a lost link does: devices move on
   * while the connector they left still has their connections.
   */
  abandon(): void;
  close(): Promise<void>;
};

const address = '127.0.0.2';

type Pair = { client: Socket; upstream: Socket; target: number };

export async function startBalancer(): Promise<Balancer> {
  const targets: number[] = [];
  const pairs = new Set<Pair>();
  const left = new Set<Socket>();
  let turn = 0;

  const server = createServer({ noDelay: true }, (client) => {
    client.on('error', () => client.destroy());
    offer(client, targets.length);
  });

  function offer(client: Socket, attempts: number): void {
    const target = targets[turn++ % targets.length];
    if (attempts === 0 || target === undefined) return void client.resetAndDestroy();
    const upstream = connect({
      port: target,
      host: '127.0.0.1',
      localAddress: address,
      noDelay: true,
    });
    const refused = () => offer(client, attempts - 1);
    upstream.once('error', refused).once('connect', () => {
      upstream.off('error', refused);
      join({ client, upstream, target });
    });
  }

  function join(pair: Pair): void {
    const { client, upstream } = pair;
    pairs.add(pair);
    upstream.write(`PROXY TCP4 127.0.0.1 127.0.0.1 ${client.remotePort ?? 0} 1883\r\n`);
    const end = () => {
      if (!pairs.delete(pair)) return;
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end);
    client.on('data', (chunk) => upstream.write(chunk));
    upstream.on('data', (chunk) => client.write(chunk));
  }

  server.listen({ port: 0, host: '127.0.0.1', backlog: 1_024 });
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    address,
    targets,
    count: (target) => [...pairs].filter((pair) => pair.target === target).length,
    abandon() {
      for (const pair of pairs) {
        pairs.delete(pair);
        left.add(pair.upstream);
        pair.upstream.once('close', () => left.delete(pair.upstream));
        pair.client.destroy();
      }
    },
    async close() {
      server.close();
      for (const { client, upstream } of pairs)
        for (const socket of [client, upstream]) socket.destroy();
      for (const socket of left) socket.destroy();
      await once(server, 'close');
    },
  };
}
