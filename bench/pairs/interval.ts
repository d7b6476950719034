import { median } from '../rounds.ts';

/** `coverage`: the probability that the interval contains the true median. */
export type MedianInterval = { median: number; low: number; high: number; coverage: number };

/**
 * The median of independent values and an interval for it, for any distribution: from the k-th smallest value to the
 * k-th largest, where k is the largest that still covers 95 %. The number of values below the true median is binomial
 * with probability a half. Fewer than six values cover less than 95 %, and then the interval is all of them. NaN if a
 * value is not a number.
 */
export function medianInterval(values: number[]): MedianInterval {
  if (values.length === 0 || !values.every(Number.isFinite))
    return { median: NaN, low: NaN, high: NaN, coverage: NaN };
  const sorted = values.toSorted((a, b) => a - b);
  let rank = 1;
  while (coverageOf(sorted.length, rank + 1) >= 0.95) rank += 1;
  return {
    median: median(sorted),
    low: sorted[rank - 1] ?? NaN,
    high: sorted[sorted.length - rank] ?? NaN,
    coverage: coverageOf(sorted.length, rank),
  };
}

/** The probability that the median of n values lies between the k-th smallest and the k-th largest. */
function coverageOf(n: number, rank: number): number {
  let below = 0;
  // The probability of exactly i values below, from that of i - 1.
  let chance = 2 ** -n;
  for (let i = 0; i < rank; i += 1) {
    below += chance;
    chance *= (n - i) / (i + 1);
  }
  return Math.max(0, 1 - 2 * below);
}
