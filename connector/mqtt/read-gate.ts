import type { Duplex } from 'node:stream';
import { codeOf } from '../../src/lib/thrown.ts';

/** Reads from the socket without asking the gate: some of what has arrived, or null. */
export type Read = () => Buffer | null;

/**
 * Puts `take` between a socket and its reader: it is called instead of `socket.read()`, and the reader gets what it
 * returns. Node's own `read(0)`, which fills the socket's buffer, passes.
 *
 * A connection that the peer resets is destroyed only once everything that arrived before is read, or after `lingerMs`.
 * Node would throw away what is in the socket's buffer and, after a failed write, what is in the system's.
 */
export function gateReads(
  socket: Duplex,
  take: (read: Read) => Buffer | null,
  lingerMs = 10_000,
): void {
  const { read: readBuffer, destroy } = socket;
  const read: Read = () => {
    // Without a size, `read` ends the stream if there is nothing more.
    const size = socket.readableLength > mostBytes ? mostBytes : undefined;
    return readBuffer.call(socket, size) as Buffer | null;
  };
  let lost: { error: Error; timer: NodeJS.Timeout } | null = null;

  socket.read = (size?: number) => {
    if (size === 0) return readBuffer.call(socket, 0) as unknown;
    let chunk: Buffer | null;
    let before: number;
    // A packet may be longer than one read, and then nothing of it is returned yet.
    do {
      before = socket.readableLength;
      chunk = take(read);
    } while (chunk === null && socket.readableLength > 0 && socket.readableLength < before);
    // Waits until the reader has handled what it got.
    if (lost !== null && socket.readableLength === 0) setImmediate(endLost);
    return chunk;
  };

  function endLost(): void {
    if (lost === null || socket.readableLength > 0) return;
    clearTimeout(lost.timer);
    destroy.call(socket, lost.error);
  }

  socket.destroy = (error?: Error) => {
    const isOfPeer = error !== undefined && lossCodes.has(codeOf(error));
    if (!isOfPeer || socket.readableLength === 0 || socket.destroyed) {
      if (lost !== null) clearTimeout(lost.timer);
      return destroy.call(socket, error);
    }
    lost ??= { error, timer: setTimeout(() => destroy.call(socket, error), lingerMs).unref() };
    return socket;
  };
  readOnAfterWrites(socket, lingerMs);
}

/**
 * Leaves a write that failed because the peer is gone to the reads, which come to their end too. When the peer of a
 * WebSocket has sent its close frame, the error has no code.
 */
function readOnAfterWrites(socket: Duplex, lingerMs: number): void {
  type Written = (error?: Error | null) => void;
  let timer: NodeJS.Timeout | null = null;
  const leave = (done: Written) => (error?: Error | null) => {
    if (!error || !isLoss(error)) return done(error);
    timer ??= setTimeout(() => socket.destroy(), lingerMs).unref();
    done();
  };
  const { _write: write, _writev: writev } = socket;
  socket._write = (chunk, encoding, done) => write.call(socket, chunk, encoding, leave(done));
  if (writev) socket._writev = (chunks, done) => writev.call(socket, chunks, leave(done));
  socket.once('close', () => timer && clearTimeout(timer));
}

/**
 * The most that one read takes. Otherwise Node would join everything that has arrived: 128 KiB of the smallest packets,
 * of which a few are taken and the rest is unshifted again.
 */
const mostBytes = 16_384;

/** Codes of a connection that the peer has ended. */
const lossCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

const isLoss = (error: Error) => codeOf(error) === '' || lossCodes.has(codeOf(error));

/** Makes the reader of a gated socket read again. */
export function wakeReader(socket: Duplex): void {
  socket.emit('readable');
}
