import type { Sql } from '../db/sql.ts';
import type { StreamPosition } from '../streams/position.ts';

export type MissedSeries = { id: number; deviceId: number; uuid: string; sId: string };

/** A page of an account's senses behind `after`; `ids`: only of these devices, null: of all. */
export async function listSeries(
  sql: Sql,
  accountId: number,
  { ids, senses }: { ids: readonly number[] | null; senses: readonly string[] | undefined },
  { after, limit }: { after: number; limit: number },
): Promise<MissedSeries[]> {
  const { rows } = await sql.query<MissedSeries>({
    name: 'list-missed-series',
    text: `
      select s.id, s.device_id as "deviceId", d.uuid, s.s_id as "sId"
        from device d
        join series s on s.device_id = d.id
       where d.account_id = $1
         and ($2::bigint[] is null or d.id = any($2))
         and ($3::text[] is null or s.s_id = any($3))
         and s.id > $4
       order by s.id
       limit $5`,
    values: [accountId, ids, senses, after, limit],
  });
  return rows;
}

/** `place`: of the series among those that were asked for; `micros` since the epoch. */
export type MissedRow = { place: number; micros: number; ts: number; val: number; long: number };

export type MissedQuery = {
  seriesIds: number[];
  /** Of each series only what is later, in microseconds since the epoch. */
  afterMicros: number[];
  /** Nothing before it, in ms. */
  startTs: number;
  /** What the reader has seen; null: that cannot be told from the rows. */
  seen: StreamPosition | null;
};

/**
 * Of each series what is later than the newest value that a position sees, in the order of the series and of
 * time. The transaction that wrote a row is its `xmin`, of which the upper half is that of the snapshot.
 */
export async function listMissed(
  sql: Sql,
  { seriesIds, afterMicros, startTs, seen }: MissedQuery,
  limit: number,
): Promise<MissedRow[]> {
  const newestSeen = `
         select date_trunc('milliseconds', o.ts) + interval '1 millisecond'
           from measurement o
          where o.series_id = wanted.series_id
            and o.ts >= ms_to_timestamp($3)
            and pg_visible_in_snapshot(
                  (case when o.xmin::text::bigint + present.era < present.xmax
                        then o.xmin::text::bigint + present.era
                        else o.xmin::text::bigint + present.era - 4294967296 end)::text::xid8,
                  $5::pg_snapshot)
          order by o.ts desc
          limit 1`;
  const { rows } = await sql.query<MissedRow>({
    // Without a name, so that it is planned for these values: the columns of compressed chunks have no xmin,
    // and the plan must leave those chunks out.
    text: `
      select wanted.place - 1 as place, found.ts, found.micros, found.val, found.long
        from unnest($1::bigint[], $2::bigint[]) with ordinality
               as wanted (series_id, after_micros, place)
       cross join (
         select xmax, xmax / 4294967296 * 4294967296 as era
           from (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as xmax) snapshot
          offset 0) present
       cross join lateral (
         select m.ts, (extract(epoch from m.ts) * 1000000)::bigint as micros, m.val, m.long
           from measurement m
          where m.series_id = wanted.series_id
            and m.ts >= ms_to_timestamp($3)
            and m.ts > ms_to_timestamp(0) + wanted.after_micros * interval '1 microsecond'
            ${seen ? `and m.ts >= coalesce((${newestSeen}), '-infinity')` : ''}
          order by m.ts
          limit $4) found
       order by wanted.place, found.ts
       limit $4`,
    values: [seriesIds, afterMicros, startTs, limit, ...(seen ? [seen.snapshot] : [])],
  });
  return rows;
}
