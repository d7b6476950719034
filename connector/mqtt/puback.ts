import type { Connection } from './connection.ts';

/**
 * Writes the acknowledgements of QoS 1 messages, MQTT 3.1.1 section 3.4, in one piece: as aedes does
 * it, each is three writes (over WebSocket three frames). A socket that is full is not read either,
 * so that what waits to be written stays bounded.
 */
export function writePubacks(connection: Connection, messageIds: number[], nowMs: number): void {
  const { socket } = connection;
  if (messageIds.length === 0 || socket.destroyed) return;
  const bytes = Buffer.allocUnsafe(messageIds.length * 4);
  let at = 0;
  for (const messageId of messageIds) {
    bytes[at] = 0x40;
    bytes[at + 1] = 2;
    at = bytes.writeUInt16BE(messageId, at + 2);
  }
  if (socket.write(bytes) || connection.blockedSinceMs !== null) return;
  connection.blockedSinceMs = nowMs;
  socket.once('drain', () => {
    connection.blockedSinceMs = null;
    connection.resume();
  });
}
