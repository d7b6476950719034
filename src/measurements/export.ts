import type { Sql } from '../db/sql.ts';
import type { ExportRange, ExportSeries } from './export-points.ts';
import type { StatName } from './export-schema.ts';
import { type BucketWidth, unitMs, widestBucketMs } from './schema.ts';

export type BucketsWanted = { width: BucketWidth; tz: string; stats: readonly StatName[] };

export type ExportBucket = { deviceAuthUuid: string; sId: string; ts: number } & Partial<
  Record<StatName, number>
>;

/** Buckets that a statement gives at most of one series; and series that it looks at where they are few. */
const blockBuckets = 10_000;

/** As PostgreSQL calls them. */
const unitNames = { s: 'second', m: 'minute', h: 'hour', d: 'day', mo: 'month' };

const first = '(array_agg(val order by ts))[1]';
export const last = '(array_agg(val order by ts desc))[1]';
// Two values near the end of what a double holds would overflow a sum, and fail for everybody.
const sum = 'sum(greatest(least(val, 1e290), -1e290))';
const expressions: Record<StatName, string> = {
  min: 'min(val)',
  max: 'max(val)',
  // The mean is held between its extremes, which rounding could leave; buckets of one device say the same.
  avg: `least(greatest(${sum} / count(*), min(val)), max(val))`,
  sum,
  count: 'count(*)::integer',
  first,
  last,
  delta: `greatest(least(${last} - ${first}, 1.7976931348623157e308), -1.7976931348623157e308)`,
};

/**
 * All buckets of some series, one series after the other, positions left out. A statement covers as many buckets
 * as it may give, from the first point on that there is: what is empty is passed over.
 */
export async function* walkExportBuckets(
  sql: Sql,
  all: ExportSeries[],
  range: ExportRange,
  wanted: BucketsWanted,
): AsyncGenerator<ExportBucket[]> {
  for (const series of all) {
    let left: ExportRange | null = range;
    while (left) {
      const part = await findPart(sql, series.seriesId, left, wanted.width, wanted.tz);
      if (!part) break;
      const rows = await readBuckets(sql, series, part, wanted);
      if (rows.length > 0) yield rows;
      left = restOf(left, part);
    }
  }
}

function restOf(range: ExportRange, part: ExportRange): ExportRange | null {
  const rest =
    range.order === 'asc' ? { ...range, start: part.end + 1 } : { ...range, end: part.start - 1 };
  return rest.start <= rest.end ? rest : null;
}

/** What the next statement covers: whole buckets, but where the range ends. Null: there are no more points. */
async function findPart(
  sql: Sql,
  seriesId: number,
  range: ExportRange,
  width: BucketWidth,
  tz: string,
): Promise<ExportRange | null> {
  const edge = await findEdge(sql, seriesId, range);
  if (edge === null) return null;
  // Ten thousand wide ones would end beyond what a timestamp holds.
  const spanMs = Math.min(width.count * unitMs[width.unit] * blockBuckets, widestBucketMs);
  const [lowest, highest] = range.order === 'asc' ? [edge, edge + spanMs] : [edge - spanMs, edge];
  const { rows } = await sql.query<{ lower: number; upper: number }>(
    `select ${boundOf('ms_to_timestamp($1)', width.unit, 0)} as lower,
            ${boundOf('ms_to_timestamp($2)', width.unit, 1)} as upper`,
    [Math.max(0, lowest), Math.min(highest, range.end), width.count, tz],
  );
  const { lower = range.start, upper = range.end + 1 } = rows[0] ?? {};
  return {
    order: range.order,
    start: Math.max(range.start, lower),
    end: Math.min(range.end, upper - 1),
  };
}

/** The first point in the order that is asked for, ms. */
async function findEdge(
  sql: Sql,
  seriesId: number,
  { start, end, order }: ExportRange,
): Promise<number | null> {
  const { rows } = await sql.query<{ ts: number }>({
    name: `export-edge-${order}`,
    text: `
      select ts from measurement
       where series_id = $1 and ts >= ms_to_timestamp($2) and ts < ms_to_timestamp($3::bigint + 1)
       order by ts ${order} limit 1`,
    values: [seriesId, start, end],
  });
  return rows[0]?.ts ?? null;
}

/**
 * Where the bucket of a time begins, as SQL, or with 1 where the next one does. It is `$3` units wide, in the time
 * zone `$4`; counted from 1970 on.
 */
export function boundOf(ts: string, unit: BucketWidth['unit'], next: 0 | 1): string {
  return instantOf(`(${keyOf(ts, unit)} + ${next} * ${widthOf(unit)})`, unit);
}

const widthOf = (unit: BucketWidth['unit']) => `($3::float8 * interval '1 ${unitNames[unit]}')`;

/**
 * What the points of one bucket have in common, as SQL: for days and months its beginning by the local clock; for
 * hours and less its beginning in UTC, by the offset of that moment, since the hour that a clock repeats is two.
 */
export function keyOf(ts: string, unit: BucketWidth['unit']): string {
  const local = `(${ts} at time zone $4::text)`;
  if (unit === 'mo') {
    const months = `((extract(year from ${local}) - 1970) * 12 + extract(month from ${local}) - 1)`;
    return `(timestamp '1970-01-01' + floor(${months} / $3::integer)::integer * ${widthOf(unit)})`;
  }
  const begin = `date_bin(${widthOf(unit)}, ${local}, timestamp '1970-01-01')`;
  if (unit === 'd') return begin;
  return `(${begin} - (${local} - (${ts} at time zone 'UTC')))`;
}

/**
 * The instant that a key stands for, as SQL. Where the local clock shows midnight twice that day begins at the first
 * one; PostgreSQL takes the second. The first one is what the offset of the day before makes of it.
 */
export function instantOf(key: string, unit: BucketWidth['unit']): string {
  if (unit !== 'd' && unit !== 'mo') return `(${key} at time zone 'UTC')`;
  const known = `(${key} at time zone $4::text)`;
  const dayBefore = `(${known} - interval '24 hours')`;
  const offset = `((${dayBefore} at time zone $4::text) - (${dayBefore} at time zone 'UTC'))`;
  const earlier = `((${key} - ${offset}) at time zone 'UTC')`;
  return `(case when (${earlier} at time zone $4::text) = ${key} then least(${earlier}, ${known}) else ${known} end)`;
}

async function readBuckets(
  sql: Sql,
  { seriesId, deviceAuthUuid, sId }: ExportSeries,
  { start, end, order }: ExportRange,
  { width, tz, stats }: BucketsWanted,
): Promise<ExportBucket[]> {
  const columns = stats.map((stat) => `${expressions[stat]} as "${stat}"`).join(', ');
  const { rows } = await sql.query<Omit<ExportBucket, 'deviceAuthUuid' | 'sId'>>(
    `
      select ${instantOf('key', width.unit)} as ts, ${columns}
        from (
          select ${keyOf('m.ts', width.unit)} as key, m.ts, m.val
            from measurement m
           where m.series_id = $5 and m.long = 'NaN'
             and m.ts >= ms_to_timestamp($1) and m.ts < ms_to_timestamp($2::bigint + 1)) points
       group by key
       order by key ${order}`,
    [start, end, width.count, tz, seriesId],
  );
  return rows.map((row) => ({ deviceAuthUuid, sId, ...row }));
}
