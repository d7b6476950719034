import type { LimitsOf } from './limits.ts';

/** What is left of an account's requests after one more; `isAllowed` says whether that one was within. */
export type RequestAllowance = {
  isAllowed: boolean;
  /** Requests at once after a pause, how many of them are left, and in how many seconds all of them. */
  burst: number;
  left: number;
  fullAfterSeconds: number;
  /** How long the whole burst takes to come back, in seconds. */
  windowSeconds: number;
  /** Until another one is allowed. */
  retryAfterSeconds: number;
};

export type TakeRequest = (accountId: number) => RequestAllowance;

type Bucket = { tokens: number; atMs: number };

/** So many accounts are remembered before those with nothing to remember are looked for. */
const leastRemembered = 1_000;

/**
 * Counts the requests of each account in this process: `requestsPerSecond` on average, `requestsBurst` at
 * once after a pause. A refused one costs nothing, so whoever waits as long as told is let in.
 * `nowMs` must not jump.
 */
export function createRequestRate(
  limitsOf: LimitsOf,
  nowMs: () => number = () => performance.now(),
): TakeRequest {
  const buckets = new Map<number, Bucket>();
  let sweepAt = leastRemembered;

  function refill(bucket: Bucket, accountId: number, atMs: number): number {
    const { requestsPerSecond: perSecond, requestsBurst: burst } = limitsOf(accountId);
    const earned = ((atMs - bucket.atMs) * perSecond) / 1_000;
    return Math.min(burst, bucket.tokens + earned);
  }

  /** A full bucket says no more than none. */
  function sweep(atMs: number): void {
    for (const [accountId, bucket] of buckets) {
      const { requestsBurst } = limitsOf(accountId);
      if (refill(bucket, accountId, atMs) >= requestsBurst) buckets.delete(accountId);
    }
    sweepAt = Math.max(leastRemembered, 2 * buckets.size);
  }

  return (accountId) => {
    const atMs = nowMs();
    const { requestsPerSecond: perSecond, requestsBurst: burst } = limitsOf(accountId);
    let bucket = buckets.get(accountId);
    if (!bucket) {
      if (buckets.size >= sweepAt) sweep(atMs);
      bucket = { tokens: burst, atMs };
      buckets.set(accountId, bucket);
    }
    const tokens = refill(bucket, accountId, atMs);
    const isAllowed = tokens >= 1;
    bucket.tokens = isAllowed ? tokens - 1 : tokens;
    bucket.atMs = atMs;
    return {
      isAllowed,
      burst,
      left: Math.floor(bucket.tokens),
      fullAfterSeconds: Math.ceil((burst - bucket.tokens) / perSecond),
      windowSeconds: Math.ceil(burst / perSecond),
      retryAfterSeconds: isAllowed ? 0 : (1 - tokens) / perSecond,
    };
  };
}
