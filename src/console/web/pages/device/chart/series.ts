import { listBuckets, listPoints } from '../../../api/measurements.ts';
import type { LiveValue } from '../../../api/stream.ts';
import type { Point, Series } from './point.ts';
import { widthOf, type Range } from './range.ts';
import type { Span } from './span.ts';

/** Of fewer values each is drawn. */
const mostSingle = 2_000;

/** Reads a span: single values of senses that have few in it, buckets of the others. */
export async function loadSeries(
  uuid: string,
  span: Span,
  signal: AbortSignal,
): Promise<readonly Series[]> {
  const { bucket, ms } = widthOf(span);
  const start = Math.floor(span.start);
  const end = Math.ceil(span.end);
  const buckets = await listBuckets(uuid, { start, end, bucket }, signal);
  const bySense = Map.groupBy(buckets.toReversed(), ({ sId }) => sId);
  const few = [...bySense].flatMap(([sId, of]) => (countOf(of) < mostSingle ? [sId] : []));
  const single = few.length > 0 ? await listPoints(uuid, { senses: few, start, end }, signal) : [];
  const singles = new Map(single.map(({ sId, ts, val }) => [sId, toPoints(ts, val)]));
  return [...bySense].map(([sId, of]) => {
    const points = singles.get(sId);
    return points ? { sId, widthMs: 0, points } : { sId, widthMs: ms, points: of };
  });
}

const countOf = (points: readonly Point[]) => points.reduce((sum, { count }) => sum + count, 0);

const pointOf = (ts: number, val: number): Point => ({
  ts,
  min: val,
  max: val,
  avg: val,
  last: val,
  count: 1,
});

function toPoints(times: readonly number[], values: readonly unknown[]): Point[] {
  return times.flatMap((ts, place) => {
    const val = values[place];
    return typeof val === 'number' ? [pointOf(ts, val)] : [];
  });
}

/** Adds values that were heard; of those that come late nothing. A sense that is new had none in the range before. */
export function append(
  all: readonly Series[],
  values: readonly LiveValue[],
  { start }: Pick<Range, 'start'>,
): readonly Series[] {
  const bySense = Map.groupBy(values, ({ sId }) => sId);
  const known = new Set(all.map(({ sId }) => sId));
  const added = [...bySense].flatMap(([sId, heard]) =>
    known.has(sId) || heard.every(({ val }) => typeof val !== 'number')
      ? []
      : [{ sId, widthMs: 0, points: [] }],
  );
  return [...all, ...added].map((series: Series) => {
    const heard = bySense.get(series.sId);
    if (!heard) return series;
    const points = series.points.filter(({ ts }) => ts >= start);
    for (const { ts, val } of heard.toSorted((a, b) => a.ts - b.ts))
      if (typeof val === 'number') addValue(points, series.widthMs, ts, val);
    return { ...series, points };
  });
}

function addValue(points: Point[], widthMs: number, ts: number, val: number): void {
  const last = points.at(-1);
  const at = widthMs === 0 ? ts : Math.floor(ts / widthMs) * widthMs;
  if (!last || at > last.ts) points.push(pointOf(at, val));
  else if (widthMs > 0 && at === last.ts) points[points.length - 1] = joined(last, val);
}

const joined = (point: Point, val: number): Point => ({
  ts: point.ts,
  min: Math.min(point.min, val),
  max: Math.max(point.max, val),
  avg: (point.avg * point.count + val) / (point.count + 1),
  last: val,
  count: point.count + 1,
});
