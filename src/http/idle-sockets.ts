import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export type IdleSockets = {
  /** Closes connections without a request under way: those that wait now, and each of the others when it is through. */
  closeIdle(isBusy: (socket: Socket) => boolean): void;
  /** Its last request was answered. */
  idle(socket: Socket): void;
};

/**
 * Knows the open connections. (Node's own `closeIdleConnections` leaves out those that have not sent
 * anything yet, and looks once.) Upgraded ones are not watched.
 */
export function watchIdleSockets(): IdleSockets & { watch(server: Server): void } {
  const open = new Set<Socket>();
  let isClosing = false;
  return {
    watch(server) {
      server.on('connection', (socket) => {
        open.add(socket);
        socket.once('close', () => open.delete(socket));
        if (isClosing) socket.destroySoon();
      });
      server.on('upgrade', ({ socket }) => open.delete(socket));
    },
    idle(socket) {
      if (isClosing) socket.destroySoon();
    },
    closeIdle(isBusy) {
      isClosing = true;
      for (const socket of open) if (!isBusy(socket)) socket.destroy();
    },
  };
}
