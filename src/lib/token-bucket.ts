import type { MonotonicMs } from './clock-readings.ts';

/** How much passes a second, and how much at once after a pause. */
export type Rate = { perSecond: number; burst: number };

/**
 * A token bucket that may go into debt: a charge is never refused, but what comes next waits until it is paid off. The
 * rate is an argument of each call, so that thousands of buckets share one, and a rate may change.
 */
export class TokenBucket {
  /** A lower bound of what may be taken, without reading the clock: `level` only grows until something is taken. */
  tokens: number;
  #atMs: number;

  constructor({ burst }: Rate, monotonicMs: MonotonicMs) {
    this.tokens = burst;
    this.#atMs = monotonicMs;
  }

  take(amount: number, rate: Rate, monotonicMs: MonotonicMs): void {
    this.#settle(rate, monotonicMs);
    this.tokens -= amount;
  }

  /** What may be taken now; below 0 it is the debt. */
  level({ perSecond, burst }: Rate, monotonicMs: MonotonicMs): number {
    return Math.min(burst, this.tokens + ((monotonicMs - this.#atMs) * perSecond) / 1_000);
  }

  /** Milliseconds until something may be taken; 0: now. A part of a token is something: the rest becomes a debt. */
  waitMs(rate: Rate, monotonicMs: MonotonicMs): number {
    this.#settle(rate, monotonicMs);
    return this.tokens > 0 ? 0 : msUntilOne(this.tokens, rate);
  }

  /** Milliseconds until a whole token may be taken; 0: now. */
  waitForOneMs(rate: Rate, monotonicMs: MonotonicMs): number {
    const level = this.level(rate, monotonicMs);
    return level >= 1 ? 0 : msUntilOne(level, rate);
  }

  /** Cancels the debt. What is left of the tokens stays. */
  forgive(): void {
    this.tokens = Math.max(0, this.tokens);
  }

  /** Whether it is no different from a new one. */
  isFull(rate: Rate, monotonicMs: MonotonicMs): boolean {
    return this.level(rate, monotonicMs) >= rate.burst;
  }

  #settle(rate: Rate, monotonicMs: MonotonicMs): void {
    this.tokens = this.level(rate, monotonicMs);
    this.#atMs = monotonicMs;
  }
}

const msUntilOne = (tokens: number, { perSecond }: Rate): number =>
  Math.ceil(((1 - tokens) * 1_000) / perSecond);
