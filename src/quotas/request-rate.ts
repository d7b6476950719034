import { createBuckets } from './rates.ts';
import type { LimitsOf } from './overrides.ts';

/** What is left of an account's requests after one more; `isAllowed` says whether that one was within. */
type RequestAllowance = {
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

/**
 * Counts the requests of each account in this process: `requestsPerSecond` on average, `requestsBurst` at
 * once after a pause. A refused one costs nothing, so whoever waits as long as told is let in.
 */
export function createRequestRate(limitsOf: LimitsOf, nowMs: () => number): TakeRequest {
  const rateOf = (accountId: number) => {
    const { requestsPerSecond: perSecond, requestsBurst: burst } = limitsOf(accountId);
    return { perSecond, burst };
  };
  const buckets = createBuckets(rateOf, nowMs);

  return (accountId) => {
    const { perSecond, burst } = rateOf(accountId);
    const tokens = buckets.level(accountId);
    const isAllowed = tokens >= 1;
    if (isAllowed) buckets.take(accountId, 1);
    const left = isAllowed ? tokens - 1 : tokens;
    return {
      isAllowed,
      burst,
      left: Math.floor(left),
      fullAfterSeconds: Math.ceil((burst - left) / perSecond),
      windowSeconds: Math.ceil(burst / perSecond),
      retryAfterSeconds: isAllowed ? 0 : (1 - tokens) / perSecond,
    };
  };
}
