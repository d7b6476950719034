import type { IncomingMessage } from 'node:http';
import { network } from './address.ts';
import { MemoryBudget } from './fair-budget.ts';

/**
 * Joins the chunks of a body as they arrive. A client may send chunks of one byte each, and a Buffer for each would
 * take 100 times the memory of its content.
 */
export class JoinedChunks {
  readonly #most: number;
  #bytes: Buffer = nothing;
  #length = 0;

  /** `most`: the most bytes of all chunks together. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Whether this chunk still fits. */
  fits(chunk: Buffer): boolean {
    return this.#length + chunk.length <= this.#most;
  }

  /** Adds a chunk that fits. Returns by how many bytes the memory grew. */
  add(chunk: Buffer): number {
    const length = this.#length + chunk.length;
    const before = this.#bytes.length;
    // A body that arrives in one piece is not copied.
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
/** The least memory for a body of several chunks. */
const leastBytes = 1_024;

/** The limits within which the rest of a refused request is read and dropped. */
const longestMs = 1_000;
const mostBytes = 4 * 1_048_576;
/** Bytes read per `longestMs`: of all clients; one network may use a quarter. Small bodies cost no more than a head. */
const limits = { maxBytes: 4 * mostBytes, share: 1 / 4, maxWaiting: 0, maxWaitingOfKey: 0 };
const smallBytes = 16_384;

/**
 * Reads and drops what is left of requests that are about to be refused. Closing a connection with unread bytes resets
 * it, and the client may lose the answer (RFC 9112 section 9.6). Reading costs much more than refusing, so bytes beyond
 * 16 MiB a second, or beyond 4 MiB of one network, stay unread for that second. A process has one, for all its
 * listeners.
 */
export class UnreadBodies {
  readonly #budget = new MemoryBudget(limits);

  /** Drops the rest of a request, for at most a second and 4 MiB. `address`: the client's. */
  drop(request: IncomingMessage, address: string): Promise<void> {
    return new Promise((resolve) => {
      if (request.readableEnded || request.destroyed) return resolve();
      let left = Math.min(announcedBytes(request), mostBytes);
      const mayRead = left <= smallBytes || this.#mayRead(network(address), left);
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

  /** Whether this many bytes may be read in the second that begins now. */
  #mayRead(from: string, bytes: number): boolean {
    const place = this.#budget.enter(from, bytes);
    if (!place) return false;
    // Even if they arrive sooner: the limit is on the bytes read in that time.
    setTimeout(() => place.leave(), longestMs).unref();
    return true;
  }
}

/** Infinity for a chunked body, whose length is unknown. */
const announcedBytes = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] === undefined ? Number(headers['content-length']) || 0 : Infinity;
