import { quotaExceeded } from '../quotas/exceeded.ts';
import type { LimitOf } from '../quotas/overrides.ts';

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
