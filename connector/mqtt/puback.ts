import type { Ack, Connection } from './connection.ts';

/**
 * Writes the acknowledgements of QoS 1 messages, MQTT 3.1.1 section 3.4, and whole ones of MQTT 5, in one
 * piece: as aedes does it, each is three writes (over WebSocket three frames). A socket that is full is not
 * read either, so that what waits to be written stays bounded.
 */
export function writePubacks(connection: Connection, acks: Ack[], nowMs: number): void {
  if (acks.length === 0 || !connection.socket.writable) return;
  let length = 0;
  for (const ack of acks) length += typeof ack === 'number' ? 4 : ack.length;
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const ack of acks) {
    if (typeof ack === 'number') {
      bytes[at] = 0x40;
      bytes[at + 1] = 2;
      at = bytes.writeUInt16BE(ack, at + 2);
    } else at += ack.copy(bytes, at);
  }
  write(connection, bytes, nowMs);
}

/** Writes past aedes. A socket that is full is not read until it has taken what it was given. */
export function write(connection: Connection, bytes: Buffer, nowMs: number): void {
  const { socket } = connection;
  if (socket.write(bytes) || connection.blockedSinceMs !== null) return;
  connection.blockedSinceMs = nowMs;
  socket.once('drain', () => {
    connection.blockedSinceMs = null;
    connection.resume();
  });
}
