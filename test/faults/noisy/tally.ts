import type { Socket } from 'node:net';

/** The figures of the noise: bytes sent, and how often something happened. */
export type Tally = {
  count(what: string, times?: number): void;
  /** Counts bytes that were not sent by a socket of `watch`. */
  sent(bytes: number): void;
  watch(socket: Socket): void;
  read(): { bytesSent: number; counts: Record<string, number> };
  /** Counts from now on, without the preparation. */
  reset(): void;
  closeSockets(): void;
};

export function createTally(): Tally {
  const sockets = new Map<Socket, number>();
  let counts: Record<string, number> = {};
  let bytes = 0;
  return {
    count: (what, times = 1) => void (counts[what] = (counts[what] ?? 0) + times),
    sent: (more) => void (bytes += more),
    watch(socket) {
      if (sockets.has(socket)) return;
      sockets.set(socket, 0);
      socket.once('close', () => {
        bytes += socket.bytesWritten - (sockets.get(socket) ?? 0);
        sockets.delete(socket);
      });
    },
    read() {
      let open = 0;
      for (const [socket, before] of sockets) open += socket.bytesWritten - before;
      return { bytesSent: bytes + open, counts: { ...counts } };
    },
    reset() {
      counts = {};
      bytes = 0;
      for (const socket of sockets.keys()) sockets.set(socket, socket.bytesWritten);
    },
    closeSockets() {
      for (const socket of sockets.keys()) socket.destroy();
    },
  };
}
