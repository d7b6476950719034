import { pause, waitAtMost } from '../lib/wait.ts';

/** Who waits for a request of another process looks again after so long, and then less often. */
const firstPauseMs = 25;
const longestPauseMs = 1_000;
/** Requests of an account that wait, in this process. */
const maxWaiting = 50;

type Wait = {
  accountId: number;
  /** How long at most. */
  leftMs: number;
  /** How often it has looked before. */
  round: number;
  signal: AbortSignal;
};

export type Seats = {
  /** Runs what others with the same name wait for. */
  hold<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Waits until it is worth looking again; false where too many of the account wait already. */
  wait(name: string, waiting: Wait): Promise<boolean>;
};

/** Who waits for whom among requests with the same key. */
export function createSeats(): Seats {
  const held = new Map<string, Promise<unknown>>();
  const waiting = new Map<number, number>();

  function count(accountId: number, by: number): void {
    const now = (waiting.get(accountId) ?? 0) + by;
    if (now > 0) waiting.set(accountId, now);
    else waiting.delete(accountId);
  }

  return {
    async hold(name, work) {
      const working = work();
      const settled = working.then(ignore, ignore);
      held.set(name, settled);
      try {
        return await working;
      } finally {
        if (held.get(name) === settled) held.delete(name);
      }
    },
    async wait(name, { accountId, leftMs, round, signal }) {
      if ((waiting.get(accountId) ?? 0) >= maxWaiting) return false;
      count(accountId, 1);
      try {
        const here = held.get(name);
        const longestMs = Math.min(leftMs, longestPauseMs, firstPauseMs * 2 ** round);
        if (here) await waitAtMost(here, leftMs);
        else await pause(longestMs, signal);
        return true;
      } finally {
        count(accountId, -1);
      }
    },
  };
}

const ignore = () => undefined;
