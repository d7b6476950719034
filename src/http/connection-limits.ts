import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { network } from '../lib/network.ts';
import { plain, trusts } from './address.ts';

export type ConnectionLimits = {
  /** Open at once, of all clients. */
  connections: number;
  /** Of one address (IPv6: a /64); of trusted proxies all that come. */
  connectionsPerAddress: number;
  trustedProxies: string[];
};

/**
 * Closes a connection beyond the limits as soon as it is accepted, before anything is read of it: each
 * costs memory for as long as its client likes. One that was upgraded is no longer counted here.
 */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  const isTrusted = trusts(limits.trustedProxies);
  const open = new Map<Socket, string>();
  const byNetwork = new Map<string, number>();

  const release = (socket: Socket) => {
    const from = open.get(socket);
    if (from === undefined) return;
    open.delete(socket);
    const left = (byNetwork.get(from) ?? 1) - 1;
    if (left > 0) byNetwork.set(from, left);
    else byNetwork.delete(from);
  };

  server.on('connection', (socket) => {
    const address = plain(socket.remoteAddress ?? '');
    const from = network(address);
    const count = byNetwork.get(from) ?? 0;
    const isTooMany = count >= limits.connectionsPerAddress && !isTrusted(address);
    if (isTooMany || open.size >= limits.connections) return void socket.destroy();
    open.set(socket, from);
    byNetwork.set(from, count + 1);
    socket.once('close', () => release(socket));
  });
  server.on('upgrade', (request: IncomingMessage) => release(request.socket));
}
