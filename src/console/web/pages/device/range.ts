import { queryOf } from '../../app/router.ts';

const hourMs = 3_600_000;

export const ranges = { '1h': 1, '6h': 6, '24h': 24, '7d': 168, '30d': 720, '90d': 2_160 } as const;
export type RangeName = keyof typeof ranges;

/** What the chart shows: a length up to now, or a part that was zoomed into. Times in ms. */
export type Range = { name: RangeName | null; start: number; end: number };

/** The range in the URL. */
export function readRange(nowTs: number): Range {
  const start = Number(queryOf('from'));
  const end = Number(queryOf('to'));
  if (Number.isSafeInteger(start) && start > 0 && end > start) return { name: null, start, end };
  const asked = queryOf('range');
  const name = asked in ranges ? (asked as RangeName) : '24h';
  return { name, start: nowTs - ranges[name] * hourMs, end: nowTs };
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
export function widthOf({ start, end }: Range): Width {
  const [bucket, ms] = widths.find(([, ms]) => ms >= (end - start) / 1_000) ?? ['1d', 24 * hourMs];
  return { bucket, ms };
}
