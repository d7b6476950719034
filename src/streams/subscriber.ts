import type { Sql } from '../db/sql.ts';
import { LoopScheduler } from '../lib/event-loop.ts';
import type { Exports } from '../quotas/exports.ts';
import { type LimitOf, quotaExceeded } from '../quotas/quotas.ts';
import type { StreamPiece } from './server-sent.ts';
import type { MonotonicMs } from '../lib/clock-readings.ts';

/**
 * `slow-reader`: more data waited for the reader than its share of the budget. `overloaded`: its account's values
 * arrive faster than they can be sent. `interrupted`: messages of other processes may have been missed.
 */
export type DropReason = 'slow-reader' | 'overloaded' | 'interrupted';

/** A stream that follows an account, with a queue of what is still to be sent to it. */
export class Subscriber<P> {
  /** Everything before it has been queued. A stream that falls behind resumes here. */
  position: P;
  /** When a piece was last queued, by the monotonic clock. */
  givenMs: number;
  hasEnded = false;
  /** Why it was ended before its reader left; null if it was not. */
  reason: DropReason | null = null;
  #error: Error | undefined;
  #waiting: StreamPiece<P>[] = [];
  #waitingBytes = 0;
  #wake: (() => void) | undefined;
  readonly #budget: SubscriberBudget;

  constructor(position: P, monotonicMs: MonotonicMs, budget: SubscriberBudget) {
    this.position = position;
    this.givenMs = monotonicMs;
    this.#budget = budget;
  }

  /** Queues a piece. If too much waits already, ends the stream instead; the queue can still be read. */
  give(piece: StreamPiece<P>, monotonicMs: MonotonicMs): void {
    if (this.hasEnded) return;
    const { length } = piece.bytes;
    if (this.#waiting.length > 0 && this.#waitingBytes + length > this.#budget.mostOfOne()) {
      this.drop('slow-reader');
      return;
    }
    this.#waiting.push(piece);
    this.#count(length);
    this.givenMs = monotonicMs;
    this.#wake?.();
  }

  /** Ends the stream. Its queue can still be read. */
  drop(reason: DropReason): void {
    this.reason ??= reason;
    this.end();
  }

  /** For a reader that has gone: ends the stream and drops its queue. */
  leave(): void {
    this.end();
    this.#waiting = [];
    this.#count(-this.#waitingBytes);
  }

  /** Nothing more will come. `read` throws the error, if there is one. */
  end(error?: Error): void {
    this.hasEnded = true;
    this.#error ??= error;
    this.#wake?.();
  }

  /** Sends presence changes to the streams of one account: the first after a pause at once, then in batches. */
  async *read(): AsyncGenerator<StreamPiece<P>> {
    for (;;) {
      const piece = this.#waiting.shift();
      if (piece) {
        this.#count(-piece.bytes.length);
        yield piece;
        continue;
      }
      if (this.#error) throw this.#error;
      if (this.hasEnded) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
      this.#wake = undefined;
    }
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#budget.bytes += bytes;
  }
}

/** Counts one more stream of the account. Returns a function to call at its end. Throws `quota-exceeded`. */
type CountStream = (accountId: number) => Promise<() => void>;

export type StreamCount = {
  count: CountStream;
  /** How many streams the account has open in this process. */
  used: (accountId: number) => number;
};

/** Counts the streams that are open in this process. A stream is refused before anything is queried for it. */
export function createStreamCount(limitOf: LimitOf): StreamCount {
  const open = new Map<number, number>();
  const used = (accountId: number) => open.get(accountId) ?? 0;
  const count: CountStream = async (accountId) => {
    const limit = await limitOf(accountId);
    const before = used(accountId);
    if (before >= limit) throw quotaExceeded({ quota: 'streams', limit, used: before });
    open.set(accountId, before + 1);
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      const left = used(accountId) - 1;
      if (left > 0) open.set(accountId, left);
      else open.delete(accountId);
    };
  };
  return { count, used };
}

export type ReadFairly = Pick<Exports, 'page'>;

/** A connection whose queries take turns with all other large reads, account by account. */
export function readFairly(exports: ReadFairly, accountId: number, db: Sql): Sql {
  return {
    query: (...args: Parameters<Sql['query']>) => exports.page(accountId, () => db.query(...args)),
  } as Sql;
}

/** Resolves when the caller may do a few milliseconds of work. */
export type NextSlice = () => Promise<void>;

/**
 * Allows one piece of work in each iteration of the event loop. However many streams are written to, requests are
 * served between two pieces. Accounts take turns.
 */
export function createSlices(): (accountId: number) => NextSlice {
  const turns = new LoopScheduler({ mostPerTurn: 1 });
  return (accountId) => () =>
    new Promise((resolve) => {
      turns.wait({ address: `${accountId}`, who: '' }, resolve);
    });
}

/** Bytes that may wait for one reader. Readers of the same event share its bytes. */
const maxOfOne = 1_048_576;
/** May always wait; a reader that keeps up has less waiting. */
const leastOfOne = 65_536;
/** One reader's share of the bytes that are still free. */
const part = 1 / 16;

/**
 * Bounds what waits to be sent to the readers of all streams. The fuller it is, the less may wait for one reader.
 * So readers that keep up stay connected, however many accounts open streams and read little.
 */
export class SubscriberBudget {
  bytes = 0;
  readonly #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that may wait for one reader now. */
  mostOfOne(): number {
    return Math.max(leastOfOne, Math.min(maxOfOne, part * (this.#maxBytes - this.bytes)));
  }
}
