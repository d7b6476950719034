import type { Sql } from '../db/sql.ts';
import type { HistoryKind } from '../history/kind.ts';
import { hourMs, listBuckets, listLocalBuckets, findBucketStart, toBucketView } from './buckets.ts';
import type { BucketRow } from './buckets.ts';
import { findBounds } from './queries.ts';
import type { MeasurementRange } from './queries.ts';
import { unitMs, type BucketView, type BucketWidth } from './schema.ts';

const weekMs = 7 * 24 * hourMs;

/** A statement gives no more rows than this: all that is ever held in memory, and read without a pause. */
const maxRows = 1_000;

/** Points are aggregated this much time at once, so that no statement runs long. */
const maxPointsSpanMs = 4 * weekMs;

/**
 * All buckets of a range, newest first, a few thousand at a time: however many there are, and however
 * slowly they are read, no more is held, and no transaction stays open. `tz`: in which days and months begin.
 */
export function walkBuckets(
  sql: Sql,
  kind: HistoryKind,
  range: MeasurementRange,
  { width, tz }: { width: BucketWidth; tz: string },
): AsyncGenerator<BucketView[]> {
  return tz === 'UTC' && width.unit !== 'mo'
    ? walkEvenBuckets(sql, kind, range, width.count * unitMs[width.unit])
    : walkLocalBuckets(sql, range, width, tz);
}

/** Those that are as long as each other. A longer range in whole hours comes from the hourly aggregate, where there is one. */
async function* walkEvenBuckets(
  sql: Sql,
  kind: HistoryKind,
  range: MeasurementRange,
  widthMs: number,
): AsyncGenerator<BucketView[]> {
  const bounds = await findBounds(sql, range);
  if (!bounds) return;
  const start = Math.max(range.start, bounds.oldest);
  let end = Math.min(range.end, bounds.newest);
  const hours = kind === 'timescaledb' && widthMs % hourMs === 0 && end - start > weekMs;
  const source = hours ? 'hours' : kind;
  const maxSpan = hours ? Infinity : Math.max(1, Math.floor(maxPointsSpanMs / widthMs));

  // How many buckets the next statement covers: more where rows are sparse, fewer where they are dense.
  let span = Math.max(1, Math.floor(maxRows / 2 / range.senses.length));
  let after: { ts: number; sId: string } | undefined;
  while (end >= start) {
    span = Math.min(span, maxSpan);
    const from = Math.max(start, Math.floor(end / widthMs) * widthMs - (span - 1) * widthMs);
    const window = { ...range, start: from, end, widthMs, after, limit: maxRows };
    const rows = await listBuckets(sql, source, window);
    if (rows.length > 0) yield rows.map(toBucketView);
    const last = rows.at(-1);
    if (last && rows.length === maxRows) {
      after = { ts: last.ts, sId: last.s_id };
      end = Math.min(end, last.ts + widthMs - 1);
      span = Math.max(1, Math.floor(bucketsIn(rows, widthMs) / 2));
    } else {
      after = undefined;
      end = from - 1;
      if (rows.length < maxRows / 4) span *= 4;
    }
  }
}

/** Days of 23, 24 and 25 hours, and months: PostgreSQL knows where they begin. */
async function* walkLocalBuckets(
  sql: Sql,
  range: MeasurementRange,
  width: BucketWidth,
  tz: string,
): AsyncGenerator<BucketView[]> {
  const widthMs = width.count * unitMs[width.unit];
  // As many buckets as a statement may give rows, within the time that one may cover.
  const spanMs = Math.min(
    Math.max(1, Math.floor(maxRows / Math.max(1, range.senses.length))) * widthMs,
    Math.max(widthMs, maxPointsSpanMs),
  );
  let left: MeasurementRange = range;
  for (;;) {
    // What is empty is passed over.
    const bounds = left.end < left.start ? null : await findBounds(sql, left);
    if (!bounds) return;
    const end = Math.min(left.end, bounds.newest);
    const begin = await findBucketStart(sql, Math.max(0, end - spanMs + widthMs), width, tz);
    const start = Math.max(left.start, begin);
    const rows = await listLocalBuckets(sql, { ...range, start, end }, width, tz);
    if (rows.length > 0) yield rows.map(toBucketView);
    left = { ...range, end: start - 1 };
  }
}

function bucketsIn(rows: BucketRow[], widthMs: number): number {
  const first = rows[0]?.ts ?? 0;
  const last = rows.at(-1)?.ts ?? 0;
  return (first - last) / widthMs + 1;
}
