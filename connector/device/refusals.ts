import { network } from '../../src/lib/network.ts';
import { Bucket, type Rate } from './rate-limit.ts';

/** Addresses that are remembered before those are forgotten that may go on at once. */
const maxIdle = 10_000;

/** Counts refused logins by address (IPv6: by /64). */
export type Refusals = {
  /** Whether no address is known for any. */
  isEmpty(): boolean;
  /** For how many ms logins of the address are to wait; 0: none. */
  waitMs(address: string): number;
  refused(address: string): void;
};

export function createRefusals(perSecond: number, now: () => number): Refusals {
  const rate: Rate = { perSecond, burst: perSecond };
  const buckets = new Map<string, Bucket>();
  let sweepAt = maxIdle;

  function forgetIdle(nowMs: number): void {
    for (const [key, bucket] of buckets) if (bucket.isFull(rate, nowMs)) buckets.delete(key);
    // Where few are idle the next look is far off: else each new address would take one.
    sweepAt = Math.max(maxIdle, 2 * buckets.size);
  }

  return {
    isEmpty: () => buckets.size === 0,
    waitMs: (address) => buckets.get(network(address))?.waitMs(rate, now()) ?? 0,
    refused(address) {
      const key = network(address);
      const nowMs = now();
      if (buckets.size >= sweepAt) forgetIdle(nowMs);
      const bucket = buckets.get(key) ?? new Bucket(rate, nowMs);
      bucket.take(1, rate, nowMs);
      buckets.set(key, bucket);
    },
  };
}
