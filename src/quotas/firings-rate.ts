import { createBuckets } from './rates.ts';
import { eventsBurst } from './event-rate.ts';
import type { LimitsOf } from './overrides.ts';

/** Of `eventsPerSecond`: what an alarm that goes on is told of is kept for a day, and no quota of a day counts it. */
const part = 1 / 10;

/**
 * How often streams are told that alarms of an account go on, in this process: a tenth of `eventsPerSecond`, and at once
 * after a pause as much as events. Takes what it allows.
 */
export function createFiringsRate(
  limitsOf: LimitsOf,
  nowMs: () => number,
): (accountId: number, events: number) => boolean {
  const buckets = createBuckets((accountId) => {
    const { eventsPerSecond } = limitsOf(accountId);
    return { perSecond: part * eventsPerSecond, burst: eventsBurst(eventsPerSecond) };
  }, nowMs);
  return (accountId, events) => {
    if (buckets.level(accountId) < events) return false;
    buckets.take(accountId, events);
    return true;
  };
}
