import type { LimitsOf } from './quotas.ts';
import type { LastByOthers } from '../lib/fair-queue.ts';
import { type Rate, TokenBucket } from '../lib/token-bucket.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

/** At this many buckets the first sweep removes full ones. */
const leastRemembered = 1_000;

/** A token bucket for each account; it may go into debt. `monotonicClock` must not jump. */
type Buckets = {
  /** Milliseconds until the account may take one; 0: now. */
  waitMs(accountId: number): number;
  /** How many the account may take now; below 0 it is in debt. */
  level(accountId: number): number;
  take(accountId: number, amount: number): void;
};

/** Calls `rateOf` each time, because an account's rate may change. */
function createBuckets(
  rateOf: (accountId: number) => Rate,
  monotonicClock: MonotonicClock,
): Buckets {
  const buckets = new Map<number, TokenBucket>();
  let sweepAt = leastRemembered;

  /** A full bucket is the same as none. */
  function sweep(): void {
    for (const [accountId, bucket] of buckets)
      if (bucket.isFull(rateOf(accountId), monotonicClock())) buckets.delete(accountId);
    sweepAt = Math.max(leastRemembered, 2 * buckets.size);
  }

  return {
    waitMs(accountId) {
      const bucket = buckets.get(accountId);
      // The usual case, without reading the clock: a bucket only fills by itself.
      if (!bucket || bucket.tokens >= 1) return 0;
      return bucket.waitForOneMs(rateOf(accountId), monotonicClock());
    },
    level(accountId) {
      const rate = rateOf(accountId);
      return buckets.get(accountId)?.level(rate, monotonicClock()) ?? rate.burst;
    },
    take(accountId, amount) {
      const rate = rateOf(accountId);
      let bucket = buckets.get(accountId);
      if (!bucket) {
        if (buckets.size >= sweepAt) sweep();
        buckets.set(accountId, (bucket = new TokenBucket(rate, monotonicClock())));
      }
      bucket.take(amount, rate, monotonicClock());
    },
  };
}

/** The quota `eventsPerSecond` in this process. */
export type EventRate = {
  /** Counts recorded events of the account, changes of state included. */
  take(accountId: number, events: number): void;
  /** How many more events of the account may be recorded: at most a burst over the rate. */
  left(accountId: number): number;
  /** Milliseconds until more may come; 0: now. */
  waitMs(accountId: number): number;
};

/** Events at once after a pause; also the most that one message may record. */
export const eventsBurst = (eventsPerSecond: number): number => 10 * eventsPerSecond;

/**
 * Devices wait as soon as the burst is used up. Messages that were already read go on, and may together record another
 * burst; the account waits for that afterwards.
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

/** Share of `eventsPerSecond`; small, because the feed keeps these for a day, and no daily quota counts them. */
const part = 1 / 10;

/**
 * How often streams receive that alarms of an account go on, in this process: a tenth of `eventsPerSecond`, with the
 * same burst as events. Counts what it allows.
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

/** The state of an account's request limit after one more request; `isAllowed`: whether that one is within it. */
type RequestAllowance = {
  isAllowed: boolean;
  /** Requests at once after a pause, how many are left, and in how many seconds all of them are available again. */
  burst: number;
  left: number;
  fullAfterSeconds: number;
  /** How long a used-up burst takes to recover, in seconds. */
  windowSeconds: number;
  /** Until another request is allowed. */
  retryAfterSeconds: number;
};

type TakeRequest = (accountId: number) => RequestAllowance;

/**
 * Counts each account's requests in this process: `requestsPerSecond` on average, `requestsBurst` at once after a
 * pause. A refused request costs nothing, so a client that waits as long as it was told is served. `requests` notes
 * every request, refused or not.
 */
export function createRequestRate(
  limitsOf: LimitsOf,
  monotonicClock: MonotonicClock,
  requests?: Pick<LastByOthers, 'note'>,
): TakeRequest {
  const rateOf = (accountId: number) => {
    const { requestsPerSecond: perSecond, requestsBurst: burst } = limitsOf(accountId);
    return { perSecond, burst };
  };
  const buckets = createBuckets(rateOf, monotonicClock);

  return (accountId) => {
    requests?.note(accountId, monotonicClock());
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
