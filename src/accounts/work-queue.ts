import { DomainError } from '../errors.ts';

/** Runs work when its turn comes; rejects with `unavailable` when too much waits already. */
export type WorkQueue = <T>(work: () => Promise<T>) => Promise<T>;

/** At most `parallel` at a time, `maxWaiting` more wait, first come first served. */
export function createWorkQueue({
  parallel,
  maxWaiting,
}: {
  parallel: number;
  maxWaiting: number;
}): WorkQueue {
  const waiting: (() => void)[] = [];
  let running = 0;

  const turn = (): Promise<void> | void => {
    if (running < parallel) {
      running += 1;
      return;
    }
    if (waiting.length >= maxWaiting) {
      throw new DomainError('unavailable', 'Too many requests wait for this already.', {
        retryAfterSeconds: 2,
      });
    }
    return new Promise((resolve) => waiting.push(resolve));
  };

  return async (work) => {
    await turn();
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}
