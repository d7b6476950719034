import type { LimitsOf } from './quotas.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

/** So much a second, and so much at once after a pause. */
type BucketRate = { perSecond: number; burst: number };

type Bucket = { tokens: number; atMs: number };

/** So many accounts are remembered before those with nothing to remember are looked for. */
const leastRemembered = 1_000;

/** A bucket for each account that fills by itself, and may go into debt. `monotonicClock` must not jump. */
type Buckets = {
  /** Milliseconds until the account may take one; 0: now. */
  waitMs(accountId: number): number;
  /** What the account may take at once; below 0 it is in debt. */
  level(accountId: number): number;
  take(accountId: number, amount: number): void;
};

/** `rateOf` is asked each time: an account's rate may change. */
function createBuckets(
  rateOf: (accountId: number) => BucketRate,
  monotonicClock: MonotonicClock,
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
      const tokens = refill(bucket, rate, monotonicClock());
      return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * 1_000) / rate.perSecond);
    },
    level(accountId) {
      const bucket = buckets.get(accountId);
      const rate = rateOf(accountId);
      return bucket ? refill(bucket, rate, monotonicClock()) : rate.burst;
    },
    take(accountId, amount) {
      const atMs = monotonicClock();
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

/** The quota `eventsPerSecond` in this process. */
export type EventRate = {
  /** So many events of the account were recorded, changes of state among them. */
  take(accountId: number, events: number): void;
  /** How many more of the account may be recorded: a burst beyond the rate at most. */
  left(accountId: number): number;
  /** Milliseconds until more may come; 0: now. */
  waitMs(accountId: number): number;
};

/** Events at once after a pause; of one message no more are recorded. */
export const eventsBurst = (eventsPerSecond: number): number => 10 * eventsPerSecond;

/**
 * Devices wait as soon as the burst is used. Messages that were read before go on, and may record another
 * burst together; the account waits for it afterwards.
 */
export function createEventRate(limitsOf: LimitsOf, monotonicClock: MonotonicClock): EventRate {
  const rateOf = (accountId: number) => {
    const { eventsPerSecond } = limitsOf(accountId);
    return { perSecond: eventsPerSecond, burst: eventsBurst(eventsPerSecond) };
  };
  const buckets = createBuckets(rateOf, monotonicClock);
  return {
    take: buckets.take,
    left: (accountId) => Math.max(0, buckets.level(accountId) + rateOf(accountId).burst),
    waitMs: buckets.waitMs,
  };
}

/** Of `eventsPerSecond`: what an alarm that goes on is told of is kept for a day, and no quota of a day counts it. */
const part = 1 / 10;

/**
 * How often streams are told that alarms of an account go on, in this process: a tenth of `eventsPerSecond`, and at once
 * after a pause as much as events. Takes what it allows.
 */
export function createFiringsRate(
  limitsOf: LimitsOf,
  monotonicClock: MonotonicClock,
): (accountId: number, events: number) => boolean {
  const buckets = createBuckets((accountId) => {
    const { eventsPerSecond } = limitsOf(accountId);
    return { perSecond: part * eventsPerSecond, burst: eventsBurst(eventsPerSecond) };
  }, monotonicClock);
  return (accountId, events) => {
    if (buckets.level(accountId) < events) return false;
    buckets.take(accountId, events);
    return true;
  };
}

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

type TakeRequest = (accountId: number) => RequestAllowance;

/**
 * Counts the requests of each account in this process: `requestsPerSecond` on average, `requestsBurst` at
 * once after a pause. A refused one costs nothing, so whoever waits as long as told is let in.
 */
export function createRequestRate(limitsOf: LimitsOf, monotonicClock: MonotonicClock): TakeRequest {
  const rateOf = (accountId: number) => {
    const { requestsPerSecond: perSecond, requestsBurst: burst } = limitsOf(accountId);
    return { perSecond, burst };
  };
  const buckets = createBuckets(rateOf, monotonicClock);

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
