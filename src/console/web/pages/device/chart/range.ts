import { queryOf, setQuery } from '../../../app/router.ts';
import type { Span } from './span.ts';

const hourMs = 3_600_000;

export const ranges = { '1h': 1, '6h': 6, '24h': 24, '7d': 168, '30d': 720, '90d': 2_160 } as const;
export type RangeName = keyof typeof ranges;

/** What the chart shows: a length up to now, or a part that was zoomed into. */
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

/** Shows a span. It becomes a step that Back undoes, unless it goes on with the one before. */
export function showSpan({ start, end }: Span, { replace = false } = {}): void {
  const middle = (start + end) / 2;
  const half = Math.min(Math.max(end - start, leastMs), mostMs) / 2;
  const from = Math.max(1, Math.round(middle - half));
  setQuery({ from: String(from), to: String(Math.round(middle + half)) }, { replace });
}

/** So many times as long, about a point of it: 0 is its start, 1 its end. */
export function scaleSpan({ start, end }: Span, by: number, about = 0.5): Span {
  const fixed = start + (end - start) * about;
  return { start: fixed - (fixed - start) * by, end: fixed + (end - fixed) * by };
}

/** Later by a part of its length. */
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

export type Width = { bucket: string; ms: number };

/** The bucket of which about a thousand fill the range. */
export function widthOf({ start, end }: Span): Width {
  const [bucket, ms] = widths.find(([, ms]) => ms >= (end - start) / 1_000) ?? ['1d', 24 * hourMs];
  return { bucket, ms };
}
