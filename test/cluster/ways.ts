import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A proxy to a server for several processes, which can be closed for one of them. */
export type Ways = {
  port: number;
  /** Ends the process's connections, and refuses new ones. */
  closeFor(pid: number): void;
  openAgain(): void;
  close(): Promise<void>;
};

export async function startWays(targetPort: number): Promise<Ways> {
  let closedFor = 0;
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    if (closedFor && hasSocketAt(closedFor, client.remotePort)) {
      client.resetAndDestroy();
      return;
    }
    const target = connect(targetPort, '127.0.0.1');
    clients.add(client);
    const end = () => {
      clients.delete(client);
      client.destroy();
      target.destroy();
    };
    for (const socket of [client, target]) socket.on('error', end).on('close', end).setNoDelay();
    client.pipe(target).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    closeFor(pid) {
      closedFor = pid;
      for (const client of clients) if (hasSocketAt(pid, client.remotePort)) client.destroy();
    },
    openAgain: () => void (closedFor = 0),
    async close() {
      for (const client of clients) client.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Whether the process has an IPv4 socket at this port, by Linux's proc(5). */
function hasSocketAt(pid: number, port = 0): boolean {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const inodes = readFileSync(`/proc/${pid}/net/tcp`, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local]) => local?.endsWith(wanted))
    .map((fields) => `socket:[${fields[9]}]`);
  return readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return inodes.includes(readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      return false;
    }
  });
}
