import type { LimitsOf } from './quotas.ts';
import type { LastByOthers } from '../lib/fair-queue.ts';
import { type Rate, TokenBucket } from '../lib/token-bucket.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

/** At this many buckets the first sweep removes full ones. */
const leastRemembered = 1_000;

/** A token bucket for each account; it may go into debt. */
class AccountBuckets {
  readonly #rateOf: (accountId: number) => Rate;
  readonly #monotonicClock: MonotonicClock;
  readonly #buckets = new Map<number, TokenBucket>();
  #sweepAt = leastRemembered;

  /** Calls `rateOf` each time, because an account's rate may change. */
  constructor(rateOf: (accountId: number) => Rate, monotonicClock: MonotonicClock) {
    this.#rateOf = rateOf;
    this.#monotonicClock = monotonicClock;
  }

  /** Milliseconds until the account may take one; 0: now. */
  waitMs(accountId: number): number {
    const bucket = this.#buckets.get(accountId);
    // The usual case, without reading the clock: a bucket only fills by itself.
    if (!bucket || bucket.tokens >= 1) return 0;
    return bucket.waitForOneMs(this.#rateOf(accountId), this.#monotonicClock());
  }

  /** How many the account may take now; below 0 it is in debt. */
  level(accountId: number): number {
    const rate = this.#rateOf(accountId);
    return this.#buckets.get(accountId)?.level(rate, this.#monotonicClock()) ?? rate.burst;
  }

  take(accountId: number, amount: number): void {
    const rate = this.#rateOf(accountId);
    let bucket = this.#buckets.get(accountId);
    if (!bucket) {
      if (this.#buckets.size >= this.#sweepAt) this.#sweep();
      this.#buckets.set(accountId, (bucket = new TokenBucket(rate, this.#monotonicClock())));
    }
    bucket.take(amount, rate, this.#monotonicClock());
  }

  /** A full bucket is the same as none. */
  #sweep(): void {
    for (const [accountId, bucket] of this.#buckets)
      if (bucket.isFull(this.#rateOf(accountId), this.#monotonicClock()))
        this.#buckets.delete(accountId);
    this.#sweepAt = Math.max(leastRemembered, 2 * this.#buckets.size);
  }
}

/** Events at once after a pause; also the most that one message may record. */
export const eventsBurst = (eventsPerSecond: number): number => 10 * eventsPerSecond;

/**
 * The quota `eventsPerSecond` in this process. It counts recorded events of accounts, changes of state included.
 * Devices wait as soon as the burst is used up. Messages that were already read go on, and may together record another
 * burst; the account waits for that afterwards.
 */
export class EventRate extends AccountBuckets {
  readonly #limitsOf: LimitsOf;

  constructor(limitsOf: LimitsOf, monotonicClock: MonotonicClock) {
    const rateOf = (accountId: number) => {
      const { eventsPerSecond } = limitsOf(accountId);
      return { perSecond: eventsPerSecond, burst: eventsBurst(eventsPerSecond) };
    };
    super(rateOf, monotonicClock);
    this.#limitsOf = limitsOf;
  }

  /** How many more events of the account may be recorded: at most a burst over the rate. */
  left(accountId: number): number {
    const burst = eventsBurst(this.#limitsOf(accountId).eventsPerSecond);
    return Math.max(0, this.level(accountId) + burst);
  }
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
  const buckets = new AccountBuckets((accountId) => {
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
  const buckets = new AccountBuckets(rateOf, monotonicClock);

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
