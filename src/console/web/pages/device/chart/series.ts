import { listBuckets, listPoints } from '../../../api/measurements.ts';
import type { ListedAlarm } from '../../../api/types.ts';
import { queryOf, setQuery } from '../../../app/router.ts';
import type { LiveValue } from '../../../app/stream.ts';
import { formatNumber } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import { beganOf, overOf } from '../../alarms/about.ts';
import { gapOf, type Point, type Segment, type Series, type Span } from './points.ts';

/** With fewer values than this, each one is drawn. */
const mostSingle = 2_000;

/** Reads a span: single values of senses with few of them, buckets of the others. */
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

/** Numbers as points, each of its own; what is no number is left out. */
export function toPoints(times: readonly number[], values: readonly unknown[]): Point[] {
  return times.flatMap((ts, place) => {
    const val = values[place];
    return typeof val === 'number' ? [pointOf(ts, val)] : [];
  });
}

/** Appends streamed values, but not late ones. A new sense had no values in the range before. */
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

const hourMs = 3_600_000;

export const ranges = { '1h': 1, '6h': 6, '24h': 24, '7d': 168, '30d': 720, '90d': 2_160 } as const;
export type RangeName = keyof typeof ranges;

/** What the chart shows: a range that ends now, or a part that was zoomed into. */
export type Range = Span & { name: RangeName | null };

/** The range in the URL. */
export function readRange(nowTs: number): Range {
  const start = Number(queryOf('from'));
  const end = Number(queryOf('to'));
  if (Number.isSafeInteger(start) && start > 0 && Number.isSafeInteger(end) && end > start)
    return { name: null, start, end };
  const asked = queryOf('range');
  const name = asked in ranges ? (asked as RangeName) : '24h';
  return { name, start: nowTs - ranges[name] * hourMs, end: nowTs };
}

const leastMs = 10_000;
const mostMs = 10 * 366 * 24 * hourMs;

/** Shows a span. It becomes a step that Back undoes, unless `replace` continues the previous one. */
export function showSpan({ start, end }: Span, { replace = false } = {}): void {
  const middle = (start + end) / 2;
  const half = Math.min(Math.max(end - start, leastMs), mostMs) / 2;
  const from = Math.max(1, Math.round(middle - half));
  setQuery({ from: String(from), to: String(Math.round(middle + half)) }, { replace });
}

/** Multiplies the length, with a fixed point: 0 is the start, 1 the end. */
export function scaleSpan({ start, end }: Span, by: number, about = 0.5): Span {
  const fixed = start + (end - start) * about;
  return { start: fixed - (fixed - start) * by, end: fixed + (end - fixed) * by };
}

/** Moves the span later by a share of its length. */
export function moveSpan({ start, end }: Span, by: number): Span {
  const ms = (end - start) * by;
  return { start: start + ms, end: end + ms };
}

const widths = [
  ['10s', 10_000],
  ['1m', 60_000],
  ['5m', 300_000],
  ['15m', 900_000],
  ['1h', hourMs],
  ['6h', 6 * hourMs],
] as const;

type Width = { bucket: string; ms: number };

/** The bucket width at which about a thousand fill the range. */
function widthOf({ start, end }: Span): Width {
  const [bucket, ms] = widths.find(([, ms]) => ms >= (end - start) / 1_000) ?? ['1d', 24 * hourMs];
  return { bucket, ms };
}

const tones = 4;

/** When alarms held; what closed without a known end, until then. */
export function alarmSpans(alarms: readonly ListedAlarm[], span: Span): Segment[] {
  return alarms
    .map((alarm) => ({
      start: Math.max(beganOf(alarm), span.start),
      end: Math.min(overOf(alarm) ?? span.end, span.end),
      text: alarm.eventName || t('chart.alarm'),
      tone: 0,
    }))
    .toSorted((one, other) => one.start - other.start);
}

/** A sense with few different values as a strip: on and off, or a number of a list. */
export function valueSegments(series: Series, isSwitch: boolean): Segment[] {
  const { points, widthMs } = series;
  const gapMs = gapOf(series);
  const segments: Segment[] = [];
  for (const [place, { ts, min, max, last }] of points.entries()) {
    const nextTs = points[place + 1]?.ts ?? Number.POSITIVE_INFINITY;
    const end = nextTs - ts > gapMs ? ts + Math.max(widthMs, gapMs / 3) : nextTs;
    const isMixed = min !== max;
    const text = isMixed ? t('chart.mixed') : isSwitch ? sayOn(last) : formatNumber(last);
    const tone = isMixed ? tones : Math.abs(last) % tones;
    const before = segments.at(-1);
    if (before?.text === text && before.end >= ts) before.end = end;
    else segments.push({ start: ts, end, text, tone });
  }
  return segments;
}

const sayOn = (value: number) => t(value === 0 ? 'chart.off' : 'chart.on');

/** Segments narrower than this cannot be told apart. */
const leastPart = 0.002;

/** The segments within the span; those too narrow to be seen are merged. */
export function thin(segments: readonly Segment[], { start, end }: Span): Segment[] {
  const leastMs = (end - start) * leastPart;
  const shown: Segment[] = [];
  for (const segment of segments) {
    if (segment.end < start || segment.start > end) continue;
    const part = {
      ...segment,
      start: Math.max(segment.start, start),
      end: Math.min(segment.end, end),
    };
    const last = shown.at(-1);
    const isNarrow = (each: Span) => each.end - each.start < leastMs;
    if (last && isNarrow(part) && isNarrow(last) && part.start - last.end < leastMs) {
      last.end = part.end;
      if (last.text !== part.text) Object.assign(last, { text: t('chart.mixed'), tone: tones });
    } else shown.push(part);
  }
  return shown;
}
