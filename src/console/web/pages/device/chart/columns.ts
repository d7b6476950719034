import type { AlignedData } from 'uplot';
import type { Point, Series } from './point.ts';

/** So many buckets without a value are drawn through; a device may be a little late. */
const bridged = 2;
/** What comes at more than so many times its usual distance comes after a gap. */
const late = 3;

/**
 * Columns as uPlot takes them: seconds, mean, least, most; oldest first. Where nothing was measured for
 * longer than usual a column of nulls makes a gap.
 */
export function toColumns({ points, widthMs }: Pick<Series, 'points' | 'widthMs'>): AlignedData {
  const longestMs = gapOf({ points, widthMs });
  const times: number[] = [];
  const columns: (number | null)[][] = [[], [], []];
  let beforeTs = Number.NaN;
  const add = (ts: number, ...values: (number | null)[]) => {
    times.push(ts / 1_000);
    for (const [place, value] of values.entries()) columns[place]?.push(value);
  };
  for (const { ts, avg, min, max } of points) {
    if (ts - beforeTs > longestMs) add((ts + beforeTs) / 2, null, null, null);
    add(ts, avg, min, max);
    beforeTs = ts;
  }
  return [times, ...columns];
}

/** Where values stand that have none beside them. */
export function alonePlaces(values: ArrayLike<number | null | undefined>): number[] {
  const isThere = (place: number) => typeof values[place] === 'number';
  return Array.from(values, (_, place) => place).filter(
    (place) => isThere(place) && !isThere(place - 1) && !isThere(place + 1),
  );
}

/** From how long on nothing measured is a gap, ms. */
export function gapOf({ points, widthMs }: Pick<Series, 'points' | 'widthMs'>): number {
  return Math.max(widthMs * bridged, usualStep(points) * late);
}

/** The median distance of neighbours, ms: a sense that measures hourly has no gaps between hours. */
function usualStep(points: readonly Point[]): number {
  const steps = points.slice(1).map(({ ts }, place) => ts - (points[place]?.ts ?? ts));
  return steps.sort((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
}
