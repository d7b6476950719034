import { median } from '../rounds.ts';

/** `coverage`: the chance that the interval holds the true median. */
export type MedianInterval = { median: number; low: number; high: number; coverage: number };

/**
 * The median of independent values and an interval for it, of any distribution: from the k-th smallest
 * value to the k-th largest, where k is the most that leaves 95 %. How many values lie below the true
 * median is binomial with a half. Fewer than six values give less than 95 %: then it is all of them. NaN
 * where a value is no number.
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

/** Of n values, the chance that the median lies between the k-th smallest and the k-th largest. */
function coverageOf(n: number, rank: number): number {
  let below = 0;
  // The chance of exactly i values below, made from that of i - 1.
  let chance = 2 ** -n;
  for (let i = 0; i < rank; i += 1) {
    below += chance;
    chance *= (n - i) / (i + 1);
  }
  return Math.max(0, 1 - 2 * below);
}
