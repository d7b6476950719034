import { plainArray } from '../db/array.ts';
import type { Sql } from '../db/sql.ts';
import type { Point } from './points.ts';

/** What shares a point's millisecond: whether its own value is there, and how many places are taken. */
export type Neighbours<P> = { point: P; isThere: boolean; taken: number };

/** Those that do not stand in the first place of their millisecond, where nearly all do. */
export async function listMissing<P extends Point>(sql: Sql, points: readonly P[]): Promise<P[]> {
  return lookUp(points, async (ofDay, isWithinDay) => {
    const { rows } = await sql.query<{ n: number }>(
      `select wanted.n
         from ${wanted}
        where not exists (
          select from measurement m
           where m.series_id = wanted.series_id and m.ts = wanted.first_ts
             and m.val = wanted.val and m.long = wanted.long and ${isWithinDay})
        order by wanted.n`,
      valuesOf(ofDay),
    );
    return rows.map(({ n }) => ofDay[n - 1] as P);
  });
}

/** Those that are stored, in whatever place of their millisecond. */
export async function listThere<P extends Point>(sql: Sql, points: readonly P[]): Promise<P[]> {
  return lookUp(points, async (ofDay, isWithinDay) => {
    const { rows } = await sql.query<{ n: number }>(
      `select wanted.n
         from ${wanted}
        where exists (
          select from measurement m
           where m.series_id = wanted.series_id
             and m.ts between wanted.first_ts and wanted.last_ts
             and m.val = wanted.val and m.long = wanted.long and ${isWithinDay})
        order by wanted.n`,
      valuesOf(ofDay),
    );
    return rows.map(({ n }) => ofDay[n - 1] as P);
  });
}

/**
 * Looks at all places of the points' milliseconds. Nobody else who asks for their series is answered
 * before the transaction ends: two that placed values side by side would not see each other's.
 */
export async function findNeighbours<P extends Point>(
  sql: Sql,
  points: readonly P[],
): Promise<Neighbours<P>[]> {
  await lockSeries(sql, points);
  return lookUp(points, async (ofDay, isWithinDay) => {
    const { rows } = await sql.query<{ isThere: boolean; taken: number }>(
      // Each millisecond is read once, however many of the points share it.
      `with wanted as materialized (select * from ${wanted}),
       there as materialized (
         select millisecond.series_id, millisecond.first_ts, m.ts, m.val, m.long
           from (select distinct series_id, first_ts, last_ts from wanted) millisecond
          cross join lateral (
            select m.ts, m.val, m.long
              from measurement m
             where m.series_id = millisecond.series_id
               and m.ts between millisecond.first_ts and millisecond.last_ts and ${isWithinDay}
            offset 0) m
       )
       select (wanted.series_id, wanted.first_ts, wanted.val, wanted.long) in
                (select series_id, first_ts, val, long from there) as "isThere",
              coalesce(places.taken, 0) as taken
         from wanted
         left join (
           select series_id, first_ts,
                  date_part('microseconds', max(ts))::integer % 1000 + 1 as taken
             from there
            group by series_id, first_ts) places using (series_id, first_ts)
        order by wanted.n`,
      valuesOf(ofDay),
    );
    return rows.map((row, i) => ({ ...row, point: ofDay[i] as P }));
  });
}

async function lockSeries(sql: Sql, points: readonly Point[]): Promise<void> {
  await sql.query({
    name: 'lock-series',
    // In order, so that two that lock the same ones wait in one direction.
    text: 'select from series where id = any($1::bigint[]) order by id for no key update',
    values: [plainArray([...new Set(points.map(({ seriesId }) => seriesId))])],
  });
}

const dayMs = 86_400_000;

/**
 * Looks up a day's points at a time. The day stands in the statement's text, and it is planned each
 * time: so the plan knows that day's chunk alone, where one for all days would look in every chunk.
 */
async function lookUp<P extends Point, T>(
  points: readonly P[],
  ask: (ofDay: P[], isWithinDay: string) => Promise<T[]>,
): Promise<T[]> {
  const days = Map.groupBy(points, ({ ts }) => Math.floor(ts / dayMs));
  const found = [...days].map(([day, ofDay]) => {
    const [from, until] = [day * dayMs, (day + 1) * dayMs];
    return ask(ofDay, `m.ts >= ms_to_timestamp(${from}) and m.ts < ms_to_timestamp(${until})`);
  });
  return (await Promise.all(found)).flat();
}

const wanted = `
  (select *, to_timestamp(seconds) as first_ts, to_timestamp(seconds + 0.000999) as last_ts
     from unnest($1::bigint[], $2::float8[], $3::float8[], $4::float8[])
       with ordinality as m (series_id, seconds, val, long, n)
   offset 0) wanted`;

function valuesOf(points: readonly Point[]): string[] {
  return [
    plainArray(points.map(({ seriesId }) => seriesId)),
    plainArray(points.map(({ ts }) => ts / 1_000)),
    plainArray(points.map(({ val }) => val)),
    plainArray(points.map(({ long }) => long)),
  ];
}
