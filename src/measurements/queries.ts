import type { QueryConfig } from 'pg';
import type { Sql } from '../db/database.ts';
import type { MeasurementCursor, MeasurementView } from './schema.ts';

/** Senses that ever measured something, in the order of their identifiers. */
export async function listSenses(sql: Sql, deviceId: number): Promise<string[]> {
  const { rows } = await sql.query<{ s_id: string }>({
    name: 'list-measured-senses',
    text: 'select s_id from measured_sense where device_id = $1 order by s_id',
    values: [deviceId],
  });
  return rows.map((row) => row.s_id);
}

/** What one device's senses measured; times in ms, inclusive. */
export type MeasurementRange = { deviceId: number; senses: string[]; start: number; end: number };

export type MeasurementRow = { s_id: string; ts: number; val: number; long: number };

/** At most `limit` points behind `after`, newest first. */
export async function listMeasurements(
  sql: Sql,
  range: MeasurementRange,
  limit: number,
  after?: MeasurementCursor,
): Promise<MeasurementRow[]> {
  const { rows } = await sql.query<MeasurementRow>(listMeasurementsQuery(range, limit, after));
  return rows;
}

/**
 * Each sense is read newest first from its own stretch of the index, and no further than a page. The
 * order is that of (ts, sense, val, long); so behind a cursor, senses before the cursor's go on within
 * its millisecond, those after it begin below, and its own goes on where it stopped.
 */
export function listMeasurementsQuery(
  { deviceId, senses, start, end }: MeasurementRange,
  limit: number,
  after?: MeasurementCursor,
): QueryConfig {
  const [ts, sId, val, long] = after ?? [end + 1, '', -Infinity, null];
  return {
    name: 'list-measurements',
    // What is asked stands in a sub-select, so that the plan over all the chunks is made once: it must
    // not look cheaper to plan for each question anew.
    text: `
      select wanted.s_id, found.ts, found.val, found.long
        from (select $1::bigint as device_id, $2::text[] as s_ids,
                     ms_to_timestamp($3) as first_ts, ms_to_timestamp($4) as last_ts,
                     ms_to_timestamp($5) as after_ts, $6::text as after_s_id,
                     $7::float8 as after_val, $8::float8 as after_long
              offset 0) asked
       cross join unnest(asked.s_ids) as wanted (s_id)
       cross join lateral (
         select m.ts, m.val, m.long
           from measurement m
          where m.device_id = asked.device_id
            and m.s_id = wanted.s_id
            and m.ts between asked.first_ts and asked.last_ts
            and (m.ts, m.val, m.long) < (
                  asked.after_ts,
                  case when wanted.s_id < asked.after_s_id collate "C" then 'NaN'
                       when wanted.s_id = asked.after_s_id then asked.after_val
                       else '-Infinity' end,
                  asked.after_long)
          order by m.ts desc, m.val desc, m.long desc
          limit $9) found
       order by found.ts desc, wanted.s_id collate "C" desc, found.val desc, found.long desc
       limit $9`,
    values: [deviceId, senses, start, Math.min(end, ts), ts, sId, val, long ?? 'NaN', limit],
  };
}

/** Time of the newest and the oldest number (not position) within a range, in ms; null when it is empty. */
export async function findBounds(
  sql: Sql,
  { deviceId, senses, start, end }: MeasurementRange,
): Promise<{ oldest: number; newest: number } | null> {
  const edge = (direction: 'asc' | 'desc') => `(
    select m.ts
      from measurement m
     where m.device_id = asked.device_id
       and m.s_id = wanted.s_id
       and m.ts between asked.first_ts and asked.last_ts
     order by m.ts ${direction}
     limit 1)`;
  const { rows } = await sql.query<{ oldest: number | null; newest: number | null }>({
    name: 'find-measurement-bounds',
    text: `
      select min(oldest.ts) as oldest, max(newest.ts) as newest
        from (select $1::bigint as device_id, $2::text[] as s_ids,
                     ms_to_timestamp($3) as first_ts, ms_to_timestamp($4) as last_ts
              offset 0) asked
       cross join unnest(asked.s_ids) as wanted (s_id)
       cross join lateral ${edge('asc')} oldest
       cross join lateral ${edge('desc')} newest`,
    values: [deviceId, senses, start, end],
  });
  const { oldest, newest } = rows[0] ?? {};
  return typeof oldest === 'number' && typeof newest === 'number' ? { oldest, newest } : null;
}

/** A number's `long` is NaN in the table: a position has both. */
export function toView({ s_id, ts, val, long }: MeasurementRow): MeasurementView {
  return { sId: s_id, val: Number.isNaN(long) ? val : { lat: val, long }, ts };
}

export function toCursor({ s_id, ts, val, long }: MeasurementRow): MeasurementCursor {
  return [ts, s_id, val, Number.isNaN(long) ? null : long];
}
