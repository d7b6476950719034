import { plainArray } from '../db/array.ts';
import type { Sql } from '../db/sql.ts';

/** A row of the history: `ts` in ms; `micros` (0 to 999) tells apart what shares its millisecond. */
export type Point = { seriesId: number; ts: number; micros: number; val: number; long: number };

/** How many different values of a series fit into a millisecond: `micros` of a timestamp count no finer. */
export const placesPerMillisecond = 1_000;

/** Leaves out those whose place is taken; gives how many there were not. `onAdded`: told of each of these. */
export async function insertPoints<P extends Point>(
  sql: Sql,
  points: readonly P[],
  onAdded?: (point: P) => void,
): Promise<number> {
  if (points.length === 0) return 0;
  if (onAdded) return insertTelling(sql, points, onAdded);
  const { rowCount } = await sql.query({
    name: 'insert-points',
    text: insert,
    values: valuesOf(points),
  });
  return rowCount ?? 0;
}

/** Of several points for one place the first one gets it. */
async function insertTelling<P extends Point>(
  sql: Sql,
  points: readonly P[],
  onAdded: (point: P) => void,
): Promise<number> {
  const { rows } = await sql.query<{ series_id: number; micros: number }>({
    name: 'insert-points-told',
    text: `${insert}
      returning series_id, (extract(epoch from ts) * 1000000)::float8 as micros`,
    values: valuesOf(points),
  });
  const inserted = new Set(rows.map(({ series_id, micros }) => `${series_id} ${micros}`));
  for (const point of points) {
    const { seriesId, ts, micros } = point;
    if (inserted.delete(`${seriesId} ${ts * 1_000 + micros}`)) onAdded(point);
  }
  return rows.length;
}

const insert = `
      insert into measurement (series_id, ts, val, long)
      select series_id, to_timestamp(seconds), val, long
        from unnest($1::bigint[], $2::float8[], $3::float8[], $4::float8[])
          as m (series_id, seconds, val, long)
          on conflict do nothing`;

function valuesOf(points: readonly Point[]): string[] {
  return [
    plainArray(points.map(({ seriesId }) => seriesId)),
    // A double of seconds is exact to the microsecond until the year 2106.
    plainArray(points.map(({ ts, micros }) => (ts * 1_000 + micros) / 1_000_000)),
    plainArray(points.map(({ val }) => val)),
    plainArray(points.map(({ long }) => long)),
  ];
}
