import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Takes bytes that are valid until it returns. False: stop reading until the socket is resumed, or `readOn` is called.
 */
type TakeBytes = (bytes: Buffer) => boolean;

/** Bytes read at once: few for a socket that sends mostly heads, many for one that sends larger bodies. */
const fewBytes = 8_192;
const manyBytes = 32_768;

type Inside = {
  _handle: { _consumed?: boolean; useUserBuffer(buffer: Buffer): void } | null;
  [name: symbol]: unknown;
};

type InsideRequest = { _readableState: { highWaterMark: number } };

/**
 * Stands between a server's sockets and the parser of node:http, which would otherwise read each socket itself, 64 KiB
 * at once. All sockets are read into one buffer, as with the `onread` option of a client's socket (`net.Socket`), so a
 * read that does not wait takes no memory of its own. Pass bytes to the parser with `socket.emit('data', bytes)`.
 * (docs/internals.md)
 */
export function createSocketReads() {
  const shared = Buffer.allocUnsafeSlow(manyBytes);
  const few = shared.subarray(0, fewBytes);
  let names: { buffer: symbol; callback: symbol } | undefined;

  /** Call it before node:http sees the socket. The function that it returns makes later reads larger. */
  return function readThrough(socket: Socket, take: TakeBytes): () => void {
    const inside = socket as unknown as Inside;
    const { _handle: handle } = inside;
    if (!handle) return () => {};
    names ??= { buffer: symbolOf(socket, 'kBuffer'), callback: symbolOf(socket, 'kBufferCb') };
    // The parser leaves alone a socket that something else reads already.
    handle._consumed = true;
    inside[names.buffer] = shared;
    inside[names.callback] = (count: number) => take(shared.subarray(0, count));
    handle.useUserBuffer(few);
    let isMuch = false;
    return () => {
      if (isMuch || socket.destroyed) return;
      isMuch = true;
      handle.useUserBuffer(shared);
    };
  };
}

/** Reads on from a socket that was handed over as it is, and that nobody resumes. */
export function readOn(socket: Socket): void {
  socket._read(0);
}

/**
 * Makes the parser pause when this many bytes of the request's body are unread, instead of 64 KiB. The parser creates a
 * Buffer of some 300 bytes for each chunk, and a chunk may have one byte.
 */
export function bufferAtMost(request: IncomingMessage, bytes: number): void {
  const { _readableState: state } = request as unknown as InsideRequest;
  state.highWaterMark = bytes;
}

function symbolOf(socket: Socket, name: string): symbol {
  const found = Object.getOwnPropertySymbols(socket).find(
    ({ description }) => description === name,
  );
  if (!found) throw new Error(`node:net has no ${name}: see docs/internals.md.`);
  return found;
}
