/** So much a second, and so much at once after a pause. */
export type BucketRate = { perSecond: number; burst: number };

type Bucket = { tokens: number; atMs: number };

/** So many accounts are remembered before those with nothing to remember are looked for. */
const leastRemembered = 1_000;

/** A bucket for each account that fills by itself, and may go into debt. `nowMs` must not jump. */
export type Buckets = {
  /** Milliseconds until the account may take one; 0: now. */
  waitMs(accountId: number): number;
  /** What the account may take at once; below 0 it is in debt. */
  level(accountId: number): number;
  take(accountId: number, amount: number): void;
};

/** `rateOf` is asked each time: an account's rate may change. */
export function createBuckets(
  rateOf: (accountId: number) => BucketRate,
  nowMs: () => number,
): Buckets {
  const buckets = new Map<number, Bucket>();
  let sweepAt = leastRemembered;

  function refill(bucket: Bucket, { perSecond, burst }: BucketRate, atMs: number): number {
    return Math.min(burst, bucket.tokens + ((atMs - bucket.atMs) * perSecond) / 1_000);
  }

  /** A full bucket says no more than none. */
  function sweep(atMs: number): void {
    for (const [accountId, bucket] of buckets) {
      const rate = rateOf(accountId);
      if (refill(bucket, rate, atMs) >= rate.burst) buckets.delete(accountId);
    }
    sweepAt = Math.max(leastRemembered, 2 * buckets.size);
  }

  return {
    waitMs(accountId) {
      const bucket = buckets.get(accountId);
      // Mostly so, and without a look at the clock: a bucket only fills by itself.
      if (!bucket || bucket.tokens >= 1) return 0;
      const rate = rateOf(accountId);
      const tokens = refill(bucket, rate, nowMs());
      return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * 1_000) / rate.perSecond);
    },
    level(accountId) {
      const bucket = buckets.get(accountId);
      const rate = rateOf(accountId);
      return bucket ? refill(bucket, rate, nowMs()) : rate.burst;
    },
    take(accountId, amount) {
      const atMs = nowMs();
      const bucket = buckets.get(accountId);
      if (bucket) {
        bucket.tokens = refill(bucket, rateOf(accountId), atMs) - amount;
        bucket.atMs = atMs;
        return;
      }
      if (buckets.size >= sweepAt) sweep(atMs);
      buckets.set(accountId, { tokens: rateOf(accountId).burst - amount, atMs });
    },
  };
}
