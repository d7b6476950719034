import type { Duplex } from 'node:stream';

/** Reads from the socket, whatever the gate says: what has arrived, or null. */
export type Read = () => Buffer | null;

/**
 * Puts `take` between a socket and whoever reads it: it is called instead of `socket.read()`, and what it
 * gives is what the reader gets. Node's own `read(0)`, which fills the socket's buffer, passes.
 */
export function gateReads(socket: Duplex, take: (read: Read) => Buffer | null): void {
  const original = socket.read;
  const read: Read = () => original.call(socket, undefined) as Buffer | null;
  socket.read = (size?: number) =>
    size === 0 ? (original.call(socket, 0) as unknown) : take(read);
}

/** Makes the reader of a gated socket ask again. */
export function wakeReader(socket: Duplex): void {
  socket.emit('readable');
}
