import { DomainError } from '../errors.ts';
import { FairBudget } from '../lib/fair-budget.ts';
import { accountGone } from './quotas.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

/** Queries whose answer is read in several pages. */
export type Exports = {
  /**
   * Returns the same pages, within the account's quota `exports`: the export counts until its last page was read or its
   * reader is gone. Throws `too-many-requests` if it cannot start in time.
   */
  run<T>(
    accountId: number,
    signal: AbortSignal,
    pages: AsyncIterable<T>,
  ): Promise<AsyncIterable<T>>;
  /** Reads one page when a slot is free. */
  page<T>(accountId: number, read: () => Promise<T>): Promise<T>;
};

type ExportsOptions = {
  limitOf: (accountId: number) => number;
  /** Whether the account was removed or disabled: its exports then end. */
  isGone?: (accountId: number) => boolean;
  /** A monotonic clock, in milliseconds. */
  monotonicClock: MonotonicClock;
  /** Pages read at once. Default: 4. */
  parallel?: number;
  /** How long an export's first page may wait. Default: 10 s. */
  waitMs?: number;
};

/**
 * The exports of one account wait for each other from beginning to end. Those of different accounts wait only while a
 * page is read, so that nobody waits for another account's slow reader.
 */
export function createExports(options: ExportsOptions): Exports {
  const { limitOf, isGone, monotonicClock, parallel = 4, waitMs = 10_000 } = options;
  const open = new FairBudget({ most: Infinity, mostOfKey: (account) => limitOf(Number(account)) });
  const reading = new FairBudget({ most: parallel, mostOfKey: () => parallel });

  async function page<T>(accountId: number, read: () => Promise<T>): Promise<T> {
    const release = await reading.take(`${accountId}`, { refuse: stoppingError });
    if (isGone?.(accountId)) {
      release();
      throw accountGone();
    }
    return read().finally(release);
  }

  async function run<T>(accountId: number, signal: AbortSignal, pages: AsyncIterable<T>) {
    const endMs = monotonicClock() + waitMs;
    const refuse = () => tooMany(limitOf(accountId), Math.ceil(waitMs / 1_000));
    const close = await open.take(`${accountId}`, { withinMs: waitMs, signal, refuse });
    signal.addEventListener('abort', close, { once: true });
    try {
      const withinMs = Math.max(0, endMs - monotonicClock());
      const release = await reading.take(`${accountId}`, { withinMs, signal, refuse });
      const iterator = pages[Symbol.asyncIterator]();
      const first = await iterator.next().finally(release);
      return readInSlots(accountId, { iterator, first, close, signal });
    } catch (error) {
      close();
      throw error;
    }
  }

  /** An iterator rather than a generator, so that `return` also runs if nobody ever read from it. */
  function readInSlots<T>(
    accountId: number,
    { iterator, first, close, signal }: Begun<T>,
  ): AsyncIterable<T> {
    let next: Promise<IteratorResult<T>> | null = Promise.resolve(first);
    const whole: AsyncIterator<T> = {
      async next() {
        // Writers of lines skip pages without text, so no write may fail although the client is gone.
        if (signal.aborted) return whole.return?.() as Promise<IteratorResult<T>>;
        const read = next ?? page(accountId, () => iterator.next());
        next = null;
        try {
          const result = await read;
          if (result.done) close();
          return result;
        } catch (error) {
          close();
          throw error;
        }
      },
      async return(value) {
        close();
        await iterator.return?.();
        return { done: true, value };
      },
    };
    return { [Symbol.asyncIterator]: () => whole };
  }

  return { run, page };
}

type Begun<T> = {
  iterator: AsyncIterator<T>;
  first: IteratorResult<T>;
  close: () => void;
  signal: AbortSignal;
};

const stoppingError = () => new DomainError('unavailable', 'The service is stopping.');

function tooMany(limit: number, windowSeconds: number): DomainError {
  return new DomainError(
    'too-many-requests',
    'The account has reached its number of concurrent exports.',
    {
      retryAfterSeconds: windowSeconds,
      rate: { quota: 'exports', limit, windowSeconds, resetSeconds: windowSeconds },
    },
  );
}
