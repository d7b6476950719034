import type { Duplex } from 'node:stream';
import { codeOf } from '../../src/lib/thrown.ts';

/** Reads from the socket, whatever the gate says: what has arrived, or null. */
export type Read = () => Buffer | null;

/**
 * Puts `take` between a socket and whoever reads it: it is called instead of `socket.read()`, and what it
 * gives is what the reader gets. Node's own `read(0)`, which fills the socket's buffer, passes.
 *
 * A connection that the other side resets is destroyed only when what had arrived before is read, or after `lingerMs`:
 * Node would throw away what is in the socket's buffer, and after a write that failed what is in the system's.
 */
export function gateReads(
  socket: Duplex,
  take: (read: Read) => Buffer | null,
  lingerMs = 10_000,
): void {
  const { read: readBuffer, destroy } = socket;
  const read: Read = () => readBuffer.call(socket, undefined) as Buffer | null;
  let lost: { error: Error; timer: NodeJS.Timeout } | null = null;

  socket.read = (size?: number) => {
    if (size === 0) return readBuffer.call(socket, 0) as unknown;
    const chunk = take(read);
    // Once whoever reads it has dealt with what it was given.
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
 * A write that fails because the other side has gone is left to its reads, which come to its end too. A WebSocket whose
 * other side has sent its close frame says so with an error that has no code.
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

/** Of a connection that the other side has ended. */
const lossCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

const isLoss = (error: Error) => codeOf(error) === '' || lossCodes.has(codeOf(error));

/** Makes the reader of a gated socket ask again. */
export function wakeReader(socket: Duplex): void {
  socket.emit('readable');
}
