import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Watches which connections have no request under way, and closes them on demand: those that wait
 * now, and each of the others when it is through. (Node's own `closeIdleConnections` leaves out
 * connections that have not sent anything yet, and looks once.) Upgraded ones are not watched.
 */
export function watchIdleSockets(server: Server): { closeIdle(): void } {
  const idle = new Set<Socket>();
  let closing = false;
  const rest = (socket: Socket): void => {
    if (closing) socket.destroySoon();
    else if (!socket.destroyed) idle.add(socket);
  };
  server.on('connection', (socket) => {
    rest(socket);
    socket.once('close', () => idle.delete(socket));
  });
  server.on('request', (request, response) => {
    idle.delete(request.socket);
    response.once('close', () => rest(request.socket));
  });
  server.on('upgrade', (request) => idle.delete(request.socket));
  return {
    closeIdle() {
      closing = true;
      for (const socket of idle) socket.destroy();
    },
  };
}
