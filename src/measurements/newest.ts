import type { QueryConfig } from 'pg';
import { maxValues, type Newest, type LastSeen } from '../engine/last-seen.ts';
import type { Sql } from '../db/sql.ts';
import type { Series } from './series.ts';

type NewestRow = { device_id: number; s_id: string; ts: number; val: number; long: number };

/**
 * Of these senses those that have measured something, by device: the newest time, and its first values and the last.
 * `untilTs`: of what is not later than that (ms).
 */
export async function findNewest(
  sql: Sql,
  wanted: readonly Series[],
  untilTs?: number,
): Promise<ReadonlyMap<number, LastSeen>> {
  const devices = Map.groupBy(await selectNewest(sql, wanted, untilTs), (row) => row.device_id);
  return new Map([...devices].map(([deviceId, rows]) => [deviceId, toSeen(rows)]));
}

function toSeen(rows: NewestRow[]): LastSeen {
  const senses = Map.groupBy(rows, (row) => row.s_id);
  return Object.fromEntries([...senses].map(([sId, values]) => [sId, toNewest(values)]));
}

function toNewest(values: NewestRow[]): Newest {
  const vals = values.map(({ val, long }) => (Number.isNaN(long) ? val : { lat: val, long }));
  const newest = { ts: values[0]?.ts ?? 0, vals: vals.slice(0, maxValues) };
  const last = vals.at(-1);
  return vals.length <= maxValues || last === undefined ? newest : { ...newest, last };
}

async function selectNewest(
  sql: Sql,
  wanted: readonly Series[],
  untilTs?: number,
): Promise<NewestRow[]> {
  if (wanted.length === 0) return [];
  const { rows } = await sql.query<NewestRow>(findNewestQuery(wanted, untilTs));
  return rows;
}

/** Gives the values of a millisecond in the order in which they came. */
export function findNewestQuery(wanted: readonly Series[], untilTs?: number): QueryConfig {
  const isBound = untilTs !== undefined;
  return {
    name: isBound ? 'find-newest-until' : 'find-newest',
    // The newest of a millisecond has microseconds where it is not the only one. Only then the second
    // look is taken: within bounds that vary, it has to find the one chunk among all of them.
    text: `
      select series.device_id, series.s_id, found.ts, found.val, found.long
        from unnest($1::bigint[], $2::text[]) as wanted (device_id, s_id)
        join series using (device_id, s_id)
       cross join lateral (
         select m.ts, date_trunc('milliseconds', m.ts) as first_ts, m.val, m.long
           from measurement m
          where m.series_id = series.id${isBound ? ' and m.ts < ms_to_timestamp($3::bigint + 1)' : ''}
          order by m.ts desc
          limit 1) newest
       cross join lateral (
         (select m.ts, m.val, m.long
            from measurement m
           where newest.first_ts < newest.ts
             and m.series_id = series.id and m.ts >= newest.first_ts and m.ts < newest.ts
           order by m.ts
           limit ${maxValues})
         union all
         select newest.ts, newest.val, newest.long) found
       order by found.ts`,
    values: [
      wanted.map(({ deviceId }) => deviceId),
      wanted.map(({ sId }) => sId),
      ...(isBound ? [untilTs] : []),
    ],
  };
}
