import { DomainError } from '../errors.ts';
import { FairTurns, type Asker } from '../lib/fair-turns.ts';

/** Runs work when its turn comes; rejects with `unavailable` when too much waits already. */
export type FairQueue = <T>(turn: Asker, work: () => Promise<T>) => Promise<T>;

type Waiting = PromiseWithResolvers<void>;

/**
 * Runs at most `parallel` at a time, `perAddress` of them for one address; `maxWaiting` more wait.
 * Addresses are served round robin, and so are the accounts of an address. When the queue is full,
 * the account that has most waiting loses its newest.
 */
export function createFairQueue({
  parallel,
  perAddress,
  maxWaiting,
}: {
  parallel: number;
  perAddress: number;
  maxWaiting: number;
}): FairQueue {
  const turns = new FairTurns<Waiting>();
  const running = new Map<string, number>();
  let allRunning = 0;

  const mayRun = (address: string) => (running.get(address) ?? 0) < perAddress;
  const startNext = (): void => {
    while (allRunning < parallel) {
      const next = turns.take(mayRun);
      if (!next) return;
      allRunning += 1;
      running.set(next.address, (running.get(next.address) ?? 0) + 1);
      next.thing.resolve();
    }
  };
  const finish = (address: string): void => {
    allRunning -= 1;
    const left = (running.get(address) ?? 0) - 1;
    if (left > 0) running.set(address, left);
    else running.delete(address);
    startNext();
  };

  return async (turn, work) => {
    const waiting: Waiting = Promise.withResolvers();
    turns.add(turn, waiting);
    startNext();
    if (turns.waiting > maxWaiting) turns.takeFromLongest().reject(tooMuch());
    await waiting.promise;
    try {
      return await work();
    } finally {
      finish(turn.address);
    }
  };
}

function tooMuch(): DomainError {
  return new DomainError('unavailable', 'Too many requests wait for this already.', {
    retryAfterSeconds: 2,
  });
}
