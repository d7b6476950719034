import type { QueryConfig } from 'pg';
import type { Sql } from '../db/sql.ts';
import type { HistoryKind } from '../history/kind.ts';
import { boundOf, instantOf, keyOf, last as newest } from './export.ts';
import type { MeasurementRange } from './queries.ts';
import type { BucketView, BucketWidth } from './schema.ts';

/** One statement's share of a list of buckets. */
export type BucketWindow = MeasurementRange & {
  widthMs: number;
  /** Only what is listed behind this bucket. */
  after?: { ts: number; sId: string } | undefined;
  limit: number;
};

export type BucketRow = {
  s_id: string;
  ts: number;
  min: number;
  max: number;
  sum: number;
  count: number;
  last: number;
};

/** Buckets of the points between `start` and `end`, newest first, each bucket's senses in order. */
export async function listBuckets(
  sql: Sql,
  source: HistoryKind | 'hours',
  window: BucketWindow,
): Promise<BucketRow[]> {
  const { rows } = await sql.query<BucketRow>(listBucketsQuery(source, window));
  return rows;
}

/** `hours`: from the aggregate; at both ends, where an hour is not whole, from the points themselves. */
export function listBucketsQuery(source: HistoryKind | 'hours', window: BucketWindow): QueryConfig {
  const { senses, start, end, widthMs, after, limit } = window;
  const ids = senses.map(({ seriesId }) => seriesId);
  const names = senses.map(({ sId }) => sId);
  const values = [ids, names, start, end, widthMs, after?.ts, after?.sId, limit];
  switch (source) {
    case 'plain':
      return { name: 'buckets-plain', text: plain, values };
    case 'timescaledb':
      return { name: 'buckets-points', text: fromPoints, values };
    case 'hours': {
      const firstHour = Math.ceil(start / hourMs) * hourMs;
      const lastHour = Math.floor((end + 1) / hourMs) * hourMs;
      return { name: 'buckets-hours', text: fromHours, values: [...values, firstHour, lastHour] };
    }
  }
}

export const hourMs = 3_600_000;

const bucket = (column: string) =>
  `date_bin($5::float8 * interval '1 millisecond', ${column}, timestamptz 'epoch')`;

const kept = `m.series_id = any($1::bigint[]) and m.long = 'NaN'`;
const within = 'm.ts >= ms_to_timestamp($3) and m.ts < ms_to_timestamp($4::bigint + 1)';

// Two values near the end of what a double holds would overflow a sum, and fail for everybody.
const summable = 'greatest(least(m.val, 1e290), -1e290)';

const page = `
  select wanted.s_id, bucket.*
    from bucket
    join unnest($1::bigint[], $2::text[]) as wanted (series_id, s_id) using (series_id)
   where ($6::bigint is null or ts < ms_to_timestamp($6) or wanted.s_id > $7::text collate "C")
   order by ts desc, wanted.s_id collate "C"
   limit $8`;

const fromPoints = `
  with bucket as (
    select m.series_id, ${bucket('m.ts')} as ts, min(m.val), max(m.val), sum(${summable}),
           count(*), last(m.val, m.ts)
      from measurement m
     where ${kept} and ${within}
     group by 1, 2)
  ${page}`;

// The newest value of a bucket is looked up where the key has it.
const plain = `
  with bucket as (
    select m.series_id, ${bucket('m.ts')} as ts, min(m.val), max(m.val), sum(${summable}),
           count(*), max(m.ts) as last_ts
      from measurement m
     where ${kept} and ${within}
     group by 1, 2),
  listed as (${page})
  select listed.*, m.val as last
    from listed
    join measurement m on m.series_id = listed.series_id and m.ts = listed.last_ts
   order by listed.ts desc, listed.s_id collate "C"`;

const edgeOf = (from: string, until: string) => `
  select m.series_id, m.ts, m.val, m.val, ${summable}, 1, m.val
    from measurement m
   where ${kept} and m.ts >= ${from} and m.ts < ${until}`;

const fromHours = `
  with part (series_id, ts, min, max, sum, count, last) as (
    select h.series_id, h.bucket, h.min, h.max, h.sum, h.count, h.last
      from measurement_hour h
     where h.series_id = any($1::bigint[])
       and h.bucket >= ms_to_timestamp($9) and h.bucket < ms_to_timestamp($10)
     union all ${edgeOf('ms_to_timestamp($3)', 'ms_to_timestamp($9)')}
     union all ${edgeOf('ms_to_timestamp($10)', 'ms_to_timestamp($4::bigint + 1)')}),
  bucket as (
    select series_id, ${bucket('ts')} as ts, min(min), max(max), sum(sum),
           sum(count)::bigint as count, last(last, ts)
      from part
     group by 1, 2)
  ${page}`;

/** All buckets of the points between `start` and `end`, newest first, as the clocks of a time zone have them. */
export async function listLocalBuckets(
  sql: Sql,
  { senses, start, end }: MeasurementRange,
  { count, unit }: BucketWidth,
  tz: string,
): Promise<BucketRow[]> {
  const { rows } = await sql.query<BucketRow>(
    `select s_id, ${instantOf('key', unit)} as ts, min(val), max(val), sum(${summable.replace('m.val', 'val')}),
            count(*), ${newest} as last
       from (select wanted.s_id, ${keyOf('m.ts', unit)} as key, m.ts, m.val
               from unnest($5::bigint[], $6::text[]) as wanted (series_id, s_id)
               join measurement m using (series_id)
              where m.long = 'NaN'
                and m.ts >= ms_to_timestamp($1) and m.ts < ms_to_timestamp($2::bigint + 1)) points
      group by s_id, key
      order by key desc, s_id collate "C"`,
    [start, end, count, tz, senses.map(({ seriesId }) => seriesId), senses.map(({ sId }) => sId)],
  );
  return rows;
}

/** Where the bucket of a time begins, ms. */
export async function findBucketStart(
  sql: Sql,
  ts: number,
  { count, unit }: BucketWidth,
  tz: string,
): Promise<number> {
  const { rows } = await sql.query<{ start: number }>(
    // The expression takes its width as $3 and the time zone as $4.
    `select ${boundOf('ms_to_timestamp($1)', unit, 0)} as start, $2::text`,
    [ts, '', count, tz],
  );
  return rows[0]?.start ?? ts;
}

/** The mean is held between its extremes, which rounding could leave. */
export function toBucketView({ s_id, ts, min, max, sum, count, last }: BucketRow): BucketView {
  const avg = Math.min(max, Math.max(min, sum / count));
  return { sId: s_id, ts, min, max, avg, count, last };
}
