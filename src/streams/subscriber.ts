import type { Sql } from '../db/sql.ts';
import type { Exports } from '../quotas/exports.ts';
import { type LimitOf, quotaExceeded } from '../quotas/quotas.ts';
import type { StreamPiece } from './server-sent.ts';
import type { MonotonicMs } from '../lib/clock-readings.ts';

/**
 * `slow-reader`: more waited for it than may. `overloaded`: its account's values come faster than they can be
 * sent. `interrupted`: other processes could not be heard for a moment.
 */
export type DropReason = 'slow-reader' | 'overloaded' | 'interrupted';

/** One stream of those that follow an account: what is to be sent to it, until it ends or falls behind. */
export class Subscriber<P> {
  /** All that it was given comes before this; a stream that falls behind resumes here. */
  position: P;
  /** When it was given something last, by the monotonic clock. */
  givenMs: number;
  hasEnded = false;
  /** Why it was ended before its reader left; null where it was not. */
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

  /** Queues a piece; where too much waits already the stream ends, and what waits can still be read. */
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

  /** Ends it; what waits can still be read. */
  drop(reason: DropReason): void {
    this.reason ??= reason;
    this.end();
  }

  /** Its reader has gone: what waits is sent to nobody. */
  leave(): void {
    this.end();
    this.#waiting = [];
    this.#count(-this.#waitingBytes);
  }

  /** Nothing more will come; with an error `read` throws it. */
  end(error?: Error): void {
    this.hasEnded = true;
    this.#error ??= error;
    this.#wake?.();
  }

  /** What it is given, as it comes, until it has ended. */
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

/** One more stream of the account. Gives what is to be called when it has ended; throws `quota-exceeded`. */
type CountStream = (accountId: number) => Promise<() => void>;

export type StreamCount = {
  count: CountStream;
  /** How many the account has open in this process. */
  used: (accountId: number) => number;
};

/** Counts the streams that are open in this process: refused before anything is asked for them. */
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

/** Each query of it waits for the account's turn among all that read much. */
export function readFairly(exports: ReadFairly, accountId: number, db: Sql): Sql {
  return {
    query: (...args: Parameters<Sql['query']>) => exports.page(accountId, () => db.query(...args)),
  } as Sql;
}

/** Resolves when it is the caller's turn to do a piece of work of a few milliseconds. */
export type NextSlice = () => Promise<void>;

/**
 * One piece of work in each turn of the event loop, first come first served: however many streams are
 * written to, requests are served between two pieces.
 */
export function createSlices(): NextSlice {
  const waiting: (() => void)[] = [];
  let scheduled = false;

  const schedule = (): void => {
    if (scheduled || waiting.length === 0) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      waiting.shift()?.();
      schedule();
    });
  };
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      schedule();
    });
}

/** Bytes that may wait to be sent to one reader; readers of the same event share its bytes. */
const maxOfOne = 1_048_576;
/** Always: a reader that keeps up has less. */
const leastOfOne = 65_536;
/** Of what is left of all. */
const part = 1 / 16;

/**
 * What waits to be sent to readers of all streams. The fuller it is, the less may wait for one: however many accounts
 * open streams and read little, whoever keeps up goes on.
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
