/** How much flows in a second, and how much at once after a pause. */
export type Rate = { perSecond: number; burst: number };

/** A token bucket that may go into debt: what is taken is never refused, but has to be waited for. */
export class Bucket {
  /** What may be taken for sure, without a look at the clock: it only grows until something is taken. */
  tokens: number;
  #atMs: number;

  constructor(rate: Rate, nowMs: number) {
    this.tokens = rate.burst;
    this.#atMs = nowMs;
  }

  take(amount: number, rate: Rate, nowMs: number): void {
    this.#refill(rate, nowMs);
    this.tokens -= amount;
  }

  /** Milliseconds until something may be taken; 0: now. */
  waitMs(rate: Rate, nowMs: number): number {
    this.#refill(rate, nowMs);
    return this.tokens > 0 ? 0 : Math.ceil(((1 - this.tokens) * 1_000) / rate.perSecond);
  }

  /** Nothing is owed any more, nor left. */
  forgive(): void {
    this.tokens = Math.max(0, this.tokens);
  }

  isFull(rate: Rate, nowMs: number): boolean {
    this.#refill(rate, nowMs);
    return this.tokens >= rate.burst;
  }

  #refill(rate: Rate, nowMs: number): void {
    const earned = ((nowMs - this.#atMs) * rate.perSecond) / 1_000;
    this.tokens = Math.min(rate.burst, this.tokens + earned);
    this.#atMs = nowMs;
  }
}
