import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { ConnectionPlaces, type ConnectionPlace } from '../lib/connection-places.ts';
import { network } from '../lib/network.ts';
import { plain, trusts } from './address.ts';

export type ConnectionLimits = {
  /** Open at once, of all clients, where there are no `places`. */
  connections: number;
  /** Of one address (IPv6: a /64); of trusted proxies all that come. */
  connectionsPerAddress: number;
  trustedProxies: string[];
  /** Shared with whoever else listens in this process. */
  places?: ConnectionPlaces | undefined;
  /** Whether a connection may be closed for another client's (`Held.mayGo`). */
  mayGo: (socket: Socket, isUrgent: boolean) => boolean;
};

/**
 * Closes a connection beyond the limits as soon as it is accepted, before anything is read of it: each
 * costs memory and a file descriptor for as long as its client likes. Where all places are taken, idle connections make way
 * for it (`ConnectionPlaces`). One that was upgraded is no longer counted here.
 */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  const { connections, connectionsPerAddress, mayGo } = limits;
  const isTrusted = trusts(limits.trustedProxies);
  const places =
    limits.places ??
    new ConnectionPlaces({
      most: connections,
      kept: 0,
      ofListener: { http: connections, mqtt: 0 },
    });
  const open = new Map<Socket, { from: string; place: ConnectionPlace }>();
  const byNetwork = new Map<string, number>();

  const release = (socket: Socket) => {
    const had = open.get(socket);
    if (had === undefined) return;
    open.delete(socket);
    had.place.leave();
    const left = (byNetwork.get(had.from) ?? 1) - 1;
    if (left > 0) byNetwork.set(had.from, left);
    else byNetwork.delete(had.from);
  };

  server.on('connection', (socket) => {
    const address = plain(socket.remoteAddress ?? '');
    const from = network(address);
    const count = byNetwork.get(from) ?? 0;
    const isTooMany = count >= connectionsPerAddress && !isTrusted(address);
    if (isTooMany) return void socket.destroy();
    const place = places.enter('http', address, {
      socket,
      mayGo: (isUrgent) => mayGo(socket, isUrgent),
    });
    if (!place) return void socket.destroy();
    open.set(socket, { from, place });
    byNetwork.set(from, (byNetwork.get(from) ?? 0) + 1);
    socket.once('close', () => release(socket));
  });
  server.on('upgrade', (request: IncomingMessage) => release(request.socket));
}
