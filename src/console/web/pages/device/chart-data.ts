import type { AlignedData } from 'uplot';
import type { BucketView } from '../../api/types.ts';

/** So many buckets without a value are drawn through; a device may be a little late. */
const bridged = 2;

/**
 * Columns as uPlot takes them: seconds, mean, least, most; oldest first. Where nothing was measured for
 * longer than usual a column of nulls makes a gap.
 */
export function toColumns(buckets: readonly BucketView[], widthMs: number): AlignedData {
  const usualMs = Math.max(widthMs * bridged, usualStep(buckets) * 3);
  const times: number[] = [];
  const columns: (number | null)[][] = [[], [], []];
  let beforeTs = Number.NaN;
  const add = (ts: number, ...values: (number | null)[]) => {
    times.push(ts / 1_000);
    for (const [place, value] of values.entries()) columns[place]?.push(value);
  };
  for (const { ts, avg, min, max } of buckets.toReversed()) {
    if (ts - beforeTs > usualMs) add(beforeTs + widthMs, null, null, null);
    add(ts, avg, min, max);
    beforeTs = ts;
  }
  return [times, ...columns];
}

/** The median distance of neighbours, ms: a sense that measures hourly has no gaps between hours. */
function usualStep(buckets: readonly BucketView[]): number {
  const steps = buckets.slice(1).map(({ ts }, place) => (buckets[place]?.ts ?? ts) - ts);
  return steps.sort((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
}
