import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Takes bytes that are good until it returns. False: nothing more is read until the socket is resumed, or `readOn`. */
type TakeBytes = (bytes: Buffer) => boolean;

/** What is read at once of a socket: a head, mostly; and of one that sends larger bodies. */
const fewBytes = 8_192;
const manyBytes = 32_768;

type Inside = {
  _handle: { _consumed?: boolean; useUserBuffer(buffer: Buffer): void } | null;
  [name: symbol]: unknown;
};

type InsideRequest = { _readableState: { highWaterMark: number } };

/**
 * Stands between a server's sockets and the parser of node:http, which else reads each socket by itself, 64 KiB at once.
 * All sockets are read into one buffer, as `onread` of a client's socket has it (`net.Socket`): what does not wait takes
 * no memory of its own. The parser is given bytes with `socket.emit('data', bytes)`. (docs/internals.md)
 */
export function createSocketReads() {
  const shared = Buffer.allocUnsafeSlow(manyBytes);
  const few = shared.subarray(0, fewBytes);
  let names: { buffer: symbol; callback: symbol } | undefined;

  /** To be called before node:http sees the socket. What it gives has more read at once from now on. */
  return function readThrough(socket: Socket, take: TakeBytes): () => void {
    const inside = socket as unknown as Inside;
    const { _handle: handle } = inside;
    if (!handle) return () => {};
    names ??= { buffer: symbolOf(socket, 'kBuffer'), callback: symbolOf(socket, 'kBufferCb') };
    // The parser leaves a socket alone that another one reads already.
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

/** Has a socket read again that nobody resumes: one that was handed on as it is. */
export function readOn(socket: Socket): void {
  socket._read(0);
}

/**
 * Has the parser pause once so many bytes of the request's body are unread, instead of 64 KiB. It makes a Buffer of some 300
 * bytes of each chunk, which may have a byte.
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
