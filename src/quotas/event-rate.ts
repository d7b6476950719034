import { createBuckets } from './rates.ts';
import type { LimitsOf } from './overrides.ts';

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
export function createEventRate(limitsOf: LimitsOf, nowMs: () => number): EventRate {
  const rateOf = (accountId: number) => {
    const { eventsPerSecond } = limitsOf(accountId);
    return { perSecond: eventsPerSecond, burst: eventsBurst(eventsPerSecond) };
  };
  const buckets = createBuckets(rateOf, nowMs);
  return {
    take: buckets.take,
    left: (accountId) => Math.max(0, buckets.level(accountId) + rateOf(accountId).burst),
    waitMs: buckets.waitMs,
  };
}
