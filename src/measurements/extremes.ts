import type { Sql } from '../db/sql.ts';

/** A sense of a device between two times (ms, inclusive), and whether its greatest or its least value is asked for. */
type Asked = { deviceId: number; sId: string; fromTs: number; toTs: number; isMax: boolean };

type Row = { place: number; val: number; ts: number; count: number };

/**
 * The greatest or least number of each range and its time (ms), the earliest of equal ones; null if there is none, or
 * if the range has more than `most` values. Positions do not count.
 */
export async function findExtremes(
  sql: Sql,
  asked: readonly Asked[],
  most: number,
): Promise<({ sId: string; val: number; ts: number } | null)[]> {
  if (asked.length === 0) return [];
  const { rows } = await sql.query<Row>({
    name: 'find-extremes',
    text: `
      select wanted.place, found.val, found.ts, found.count
        from unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::boolean[])
               with ordinality as wanted (device_id, s_id, from_ts, to_ts, is_max, place)
        join series using (device_id, s_id)
       cross join lateral (
         select val, ts, count(*) over ()
           from (select m.val, m.ts
                   from measurement m
                  where m.series_id = series.id and m.long = 'NaN'
                    and m.ts >= ms_to_timestamp(wanted.from_ts)
                    and m.ts < ms_to_timestamp(wanted.to_ts + 1)
                  order by m.ts desc
                  limit $6::integer + 1) points
          order by case when wanted.is_max then -val else val end, ts
          limit 1) found`,
    values: [
      asked.map(({ deviceId }) => deviceId),
      asked.map(({ sId }) => sId),
      asked.map(({ fromTs }) => fromTs),
      asked.map(({ toTs }) => toTs),
      asked.map(({ isMax }) => isMax),
      most,
    ],
  });
  const found = new Map(rows.map((row) => [row.place, row]));
  return asked.map(({ sId }, at) => {
    const row = found.get(at + 1);
    return row && row.count <= most ? { sId, val: row.val, ts: row.ts } : null;
  });
}
