import type { IncomingMessage } from 'node:http';
import { network } from './address.ts';
import { MemoryBudget } from './memory-budget.ts';

/**
 * Joins the chunks of a body as they come. A client may send them of one byte each, and a Buffer for each of those takes
 * 100 times as much memory as what is in it.
 */
export class JoinedChunks {
  readonly #most: number;
  #bytes: Buffer = nothing;
  #length = 0;

  /** `most`: bytes that they may have together. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Whether these fit as well. */
  hasRoom(chunk: Buffer): boolean {
    return this.#length + chunk.length <= this.#most;
  }

  /** Gives by how many bytes its memory grew. Adds only what has room. */
  add(chunk: Buffer): number {
    const length = this.#length + chunk.length;
    const before = this.#bytes.length;
    // One that comes in one piece is not copied.
    if (before === 0) this.#bytes = chunk;
    else if (length > before) {
      const larger = Buffer.allocUnsafe(
        Math.min(Math.max(length, 2 * before, leastBytes), this.#most),
      );
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    if (before > 0) chunk.copy(this.#bytes, this.#length);
    this.#length = length;
    return this.#bytes.length - before;
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#bytes = nothing;
    this.#length = 0;
  }
}

const nothing = Buffer.alloc(0);
/** Of the memory that is made for a body of several chunks. */
const leastBytes = 1_024;

/** What a client is still sending is read and dropped, within these bounds. */
const longestMs = 1_000;
const mostBytes = 4 * 1_048_576;
/** So much is read in `longestMs`: of all clients, and a quarter of it of one network. What is small costs no more than a head. */
const budget = { maxBytes: 4 * mostBytes, share: 1 / 4, maxWaiting: 0, maxWaitingOfKey: 0 };
const smallBytes = 16_384;

const room = new MemoryBudget(budget);

/**
 * Reads and drops what is still to come of a request that is about to be refused, for a second and
 * 4 MiB at most. A connection that is closed with bytes unread is reset, which may take the answer with
 * it (RFC 9112 section 9.6). Reading costs much more than refusing: what is beyond 16 MiB a second, or beyond 4 MiB
 * of a network, stays unread for that second. `address`: whose it is; its peer's, if absent.
 */
export function dropUnreadBody(
  request: IncomingMessage,
  address = request.socket.remoteAddress ?? '',
): Promise<void> {
  return new Promise((resolve) => {
    if (request.readableEnded || request.destroyed) return resolve();
    let left = Math.min(announcedBytes(request), mostBytes);
    const mayRead = left <= smallBytes || takeBudget(network(address), left);
    const timer = setTimeout(done, longestMs);
    function done(): void {
      clearTimeout(timer);
      request.off('data', onData).off('end', done).off('error', done).off('close', done);
      resolve();
    }
    function onData(chunk: Buffer): void {
      left -= chunk.length;
      if (left < 0) done();
    }
    request.unpipe();
    request.on('end', done).on('error', done).on('close', done);
    if (!mayRead) return void request.socket.pause();
    request.on('data', onData);
    request.resume();
  });
}

/** Whether so many bytes may be read in the second that begins now. */
function takeBudget(from: string, bytes: number): boolean {
  const place = room.enter(from, bytes);
  if (!place) return false;
  // Also where they come faster: what is bounded is how much is read in that time.
  setTimeout(() => place.leave(), longestMs).unref();
  return true;
}

/** Of a body in chunks nobody knows. */
const announcedBytes = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] === undefined ? Number(headers['content-length']) || 0 : Infinity;
