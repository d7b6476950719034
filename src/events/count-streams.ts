import { quotaExceeded } from '../quotas/exceeded.ts';
import type { LimitOf } from '../quotas/limits.ts';

/** One more stream of the account. Gives what is to be called when it has ended; throws `quota-exceeded`. */
export type CountStream = (accountId: number) => Promise<() => void>;

/** Counts the streams that are open in this process: refused before anything is asked for them. */
export function createStreamCount(limitOf: LimitOf): CountStream {
  const open = new Map<number, number>();
  return async (accountId) => {
    const limit = await limitOf(accountId);
    const used = open.get(accountId) ?? 0;
    if (used >= limit) throw quotaExceeded({ quota: 'streams', limit, used });
    open.set(accountId, used + 1);
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      const left = (open.get(accountId) ?? 0) - 1;
      if (left > 0) open.set(accountId, left);
      else open.delete(accountId);
    };
  };
}
