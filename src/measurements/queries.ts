import type { QueryConfig } from 'pg';
import type { Sql } from '../db/sql.ts';
import type { MeasurementCursor, MeasurementView } from './schema.ts';

/** A sense that ever measured something, and where that is kept. */
export type MeasuredSense = { seriesId: number; sId: string };

/** All that ever measured something, or those of `wanted` that did, in the order of their identifiers. */
export async function listMeasuredSenses(
  sql: Sql,
  deviceId: number,
  wanted?: string[],
): Promise<MeasuredSense[]> {
  const { rows } = await sql.query<MeasuredSense>({
    name: 'list-measured-senses',
    text: `
      select id as "seriesId", s_id as "sId"
        from series
       where device_id = $1 and ($2::text[] is null or s_id = any($2))
       order by s_id`,
    values: [deviceId, wanted],
  });
  return rows;
}

/** What some senses of a device measured; times in ms, inclusive. */
export type MeasurementRange = { senses: MeasuredSense[]; start: number; end: number };

export type PointRow = {
  s_id: string;
  ts: number;
  micros: number;
  val: number;
  long: number;
};

/** Of so many senses a page each is read at once: a second statement would take longer. */
const fewSenses = 4;

/**
 * At most `limit` points behind `after`, newest first. Of many senses a few points of each tell from when on the page
 * must be: so it reads some pages and an index entry of each sense, and not a page of each.
 */
export async function listMeasurements(
  sql: Sql,
  range: MeasurementRange,
  limit: number,
  after?: MeasurementCursor,
): Promise<PointRow[]> {
  const read = async (from: MeasurementRange, ofEach: number) =>
    (await sql.query<PointRow>(listMeasurementsQuery(from, limit, after, ofEach))).rows;
  const count = range.senses.length;
  if (count <= fewSenses) return read(range, limit);
  for (let ofEach = Math.ceil(limit / count); ofEach < limit; ofEach *= 4) {
    const newest = await read(range, ofEach);
    const last = newest.at(-1);
    // So many are not older than that one: none that is older can be among the newest.
    if (last && newest.length === limit) return read({ ...range, start: last.ts }, limit);
    const bySense = Map.groupBy(newest, ({ s_id }) => s_id);
    if ([...bySense.values()].every(({ length }) => length < ofEach)) return newest;
  }
  return read(range, limit);
}

/**
 * Each sense is read newest first from its own range of the index, `ofEach` points at most. The
 * order is that of (ts, sense); so behind a cursor, senses before the cursor's go on with its time,
 * itself and those after it below.
 */
export function listMeasurementsQuery(
  { senses, start, end }: MeasurementRange,
  limit: number,
  after?: MeasurementCursor,
  ofEach = limit,
): QueryConfig {
  const [ts, micros, sId] = after ?? [end + 1, 0, ''];
  return {
    name: 'list-measurements',
    // What is asked stands in a sub-select, so that the plan over all the chunks is made once: it must
    // not look cheaper to plan for each query again.
    text: `
      select wanted.s_id, found.ts, found.micros, found.val, found.long
        from (select $1::bigint[] as series_ids, $2::text[] as s_ids,
                     ms_to_timestamp($3) as first_ts, ms_to_timestamp($4::bigint + 1) as end_ts,
                     ms_to_timestamp($5) + $6::integer * interval '1 microsecond' as after_ts,
                     $7::text as after_s_id
              offset 0) asked
       cross join unnest(asked.series_ids, asked.s_ids) as wanted (series_id, s_id)
       cross join lateral (
         select m.ts, (extract(microseconds from m.ts)::bigint % 1000)::integer as micros, m.val, m.long
           from measurement m
          where m.series_id = wanted.series_id
            and m.ts >= asked.first_ts and m.ts < asked.end_ts
            and m.ts < case when wanted.s_id < asked.after_s_id collate "C"
                            then asked.after_ts + interval '1 microsecond'
                            else asked.after_ts end
          order by m.ts desc
          limit $9) found
       order by found.ts desc, wanted.s_id collate "C" desc
       limit $8`,
    values: [
      senses.map(({ seriesId }) => seriesId),
      senses.map((sense) => sense.sId),
      start,
      Math.min(end, ts),
      ts,
      micros,
      sId,
      limit,
      ofEach,
    ],
  };
}

/** Time of the newest and the oldest number (not position) within a range, in ms; null when it is empty. */
export async function findBounds(
  sql: Sql,
  { senses, start, end }: MeasurementRange,
): Promise<{ oldest: number; newest: number } | null> {
  const edge = (direction: 'asc' | 'desc') => `(
    select m.ts
      from measurement m
     where m.series_id = wanted.series_id
       and m.ts >= asked.first_ts and m.ts < asked.end_ts
     order by m.ts ${direction}
     limit 1)`;
  const { rows } = await sql.query<{ oldest: number | null; newest: number | null }>({
    name: 'find-measurement-bounds',
    text: `
      select min(oldest.ts) as oldest, max(newest.ts) as newest
        from (select $1::bigint[] as series_ids,
                     ms_to_timestamp($2) as first_ts, ms_to_timestamp($3::bigint + 1) as end_ts
              offset 0) asked
       cross join unnest(asked.series_ids) as wanted (series_id)
       cross join lateral ${edge('asc')} oldest
       cross join lateral ${edge('desc')} newest`,
    values: [senses.map(({ seriesId }) => seriesId), start, end],
  });
  const { oldest, newest } = rows[0] ?? {};
  return typeof oldest === 'number' && typeof newest === 'number' ? { oldest, newest } : null;
}

/** A number's `long` is NaN in the table: a position has both. */
export function toMeasurementView({
  s_id,
  ts,
  val,
  long,
}: Omit<PointRow, 'micros'>): MeasurementView {
  return { sId: s_id, val: Number.isNaN(long) ? val : { lat: val, long }, ts };
}

export function toCursor({ ts, micros, s_id }: PointRow): MeasurementCursor {
  return [ts, micros, s_id];
}
