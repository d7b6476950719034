import { DomainError } from '../errors.ts';
import { accountGone } from './quotas.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

/** Queries that are answered in more than one piece. */
export type Exports = {
  /**
   * The same pages, within the account's quota `exports`: it counts until the last one was read or
   * nobody reads any more. Throws `too-many-requests` where its turn did not come in time.
   */
  run<T>(
    accountId: number,
    signal: AbortSignal,
    pages: AsyncIterable<T>,
  ): Promise<AsyncIterable<T>>;
  /** Reads one page, in turn. */
  page<T>(accountId: number, read: () => Promise<T>): Promise<T>;
};

type ExportsOptions = {
  limitOf: (accountId: number) => number;
  /** Whether the account was removed or shut out: what it is reading ends. */
  isGone?: (accountId: number) => boolean;
  /** Milliseconds that only go forward. */
  monotonicClock: MonotonicClock;
  /** Pages that are read at once; 4. */
  parallel?: number;
  /** For an export's first page; 10 s. */
  waitMs?: number;
};

/**
 * An account's own exports wait for each other until they have ended; those of all accounts only while a
 * page is read, so that nobody waits for a slow reader of another account.
 */
export function createExports(options: ExportsOptions): Exports {
  const { limitOf, isGone, monotonicClock, parallel = 4, waitMs = 10_000 } = options;
  const open = createSlots(({ accountId, ofAccount }) => ofAccount < limitOf(accountId));
  const reading = createSlots(({ ofAll }) => ofAll < parallel);

  async function page<T>(accountId: number, read: () => Promise<T>): Promise<T> {
    const release = await reading.take(accountId, { refuse: noTurn });
    if (isGone?.(accountId)) {
      release();
      throw accountGone();
    }
    return read().finally(release);
  }

  async function run<T>(accountId: number, signal: AbortSignal, pages: AsyncIterable<T>) {
    const endMs = monotonicClock() + waitMs;
    const refuse = () => tooMany(limitOf(accountId), Math.ceil(waitMs / 1_000));
    const close = await open.take(accountId, { withinMs: waitMs, signal, refuse });
    signal.addEventListener('abort', close, { once: true });
    try {
      const withinMs = Math.max(0, endMs - monotonicClock());
      const release = await reading.take(accountId, { withinMs, signal, refuse });
      const iterator = pages[Symbol.asyncIterator]();
      const first = await iterator.next().finally(release);
      return inTurns(accountId, { iterator, first, close, signal });
    } catch (error) {
      close();
      throw error;
    }
  }

  /** An iterator and no generator: one that nobody began to read is ended too. */
  function inTurns<T>(
    accountId: number,
    { iterator, first, close, signal }: Begun<T>,
  ): AsyncIterable<T> {
    let next: Promise<IteratorResult<T>> | null = Promise.resolve(first);
    const whole: AsyncIterator<T> = {
      async next() {
        // Whoever writes lines skips pages without text, so that no write fails although the client has gone.
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
  close: Release;
  signal: AbortSignal;
};

const noTurn = () => new DomainError('unavailable', 'The service is stopping.');

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

/** Gives back what was taken; once, however often it is called. */
type Release = () => void;

type SlotWait = {
  /** Longest wait; without it there is no end to it. */
  withinMs?: number | undefined;
  /** Who waits has gone. */
  signal?: AbortSignal | undefined;
  /** What is thrown where no slot became free in time. */
  refuse: () => Error;
};

export type Slots = {
  take(accountId: number, wait: SlotWait): Promise<Release>;
};

/** What is taken now, by the account and by all of them. */
type Taken = { accountId: number; ofAccount: number; ofAll: number };

type Waiting = { grant: () => void };

/** Slots that accounts take in turns, and each account's work in its order. */
export function createSlots(hasRoom: (taken: Taken) => boolean): Slots {
  const taken = new Map<number, number>();
  /** First the account whose turn it is; whoever had it goes to the end. */
  const lines = new Map<number, Set<Waiting>>();
  let all = 0;

  const mayTake = (accountId: number) =>
    hasRoom({ accountId, ofAccount: taken.get(accountId) ?? 0, ofAll: all });

  function takeOne(accountId: number): Release {
    taken.set(accountId, (taken.get(accountId) ?? 0) + 1);
    all += 1;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const left = (taken.get(accountId) ?? 0) - 1;
      if (left > 0) taken.set(accountId, left);
      else taken.delete(accountId);
      all -= 1;
      grant();
    };
  }

  function grant(): void {
    for (const [accountId, line] of lines) {
      const [first] = line;
      if (!first || !mayTake(accountId)) continue;
      leave(accountId, first);
      if (lines.delete(accountId)) lines.set(accountId, line);
      first.grant();
    }
  }

  function leave(accountId: number, one: Waiting): void {
    const line = lines.get(accountId);
    line?.delete(one);
    if (line?.size === 0) lines.delete(accountId);
  }

  return {
    take(accountId, { withinMs, signal, refuse }) {
      // Its end was told before anybody could listen for it: the slot would never be given back.
      if (signal?.aborted) return Promise.reject(refuse());
      if (!lines.has(accountId) && mayTake(accountId)) return Promise.resolve(takeOne(accountId));
      const { promise, resolve, reject } = Promise.withResolvers<Release>();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', giveUp);
      };
      const one: Waiting = {
        grant: () => {
          end();
          resolve(takeOne(accountId));
        },
      };
      const giveUp = () => {
        end();
        leave(accountId, one);
        reject(refuse());
      };
      const timer = withinMs === undefined ? undefined : setTimeout(giveUp, withinMs);
      const line = lines.get(accountId) ?? new Set();
      lines.set(accountId, line.add(one));
      signal?.addEventListener('abort', giveUp, { once: true });
      return promise;
    },
  };
}
