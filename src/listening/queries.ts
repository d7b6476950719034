import type { Sql } from '../db/sql.ts';
import { unnoticedGapMs } from '../engine/listening.ts';

/** A connector that says nothing for longer did not listen. */
export const gapSeconds = unnoticedGapMs / 1_000;
/** How long gaps are kept: as long as the longest time that purposes can ask for. */
export const keptDays = 31;

/** `from_at` and `to_at`: one of its gaps; null where it has none. */
export type HeardRow = {
  connector_id: number;
  heard_at: number;
  from_at: number | null;
  to_at: number | null;
};

/**
 * Writes that these connectors listen now, by the service's time. Where the last time is too long ago, also
 * because the clock was set forward, what lies between is a gap.
 */
export async function noteListening(db: Sql, connectorIds: number[]): Promise<void> {
  await db.query(
    `with time as materialized (
       select service_now() as now
     ), before as (
       select l.connector_id, l.heard_at
         from listening l
        where l.connector_id = any($1::integer[])
        order by l.connector_id
          for update
     ), cut as (
       -- The clock was ahead when it was written, and has been set back: what is still to come is no gap.
       update listening_gap g
          set to_at = greatest(g.from_at, time.now)
         from time
        where g.connector_id = any($1::integer[])
          and g.to_at > time.now + $2 * interval '1 second'
     ), gap as (
       insert into listening_gap (connector_id, from_at, to_at)
       select b.connector_id, b.heard_at, time.now
         from before b, time
        where b.heard_at < time.now - $2 * interval '1 second'
       on conflict do nothing
     )
     insert into listening (connector_id, heard_at)
     select id, time.now
       from unnest($1::integer[]) as id, time, (select count(*) from before) locked
      order by id
     on conflict (connector_id) do update set heard_at = excluded.heard_at`,
    [connectorIds, gapSeconds],
  );
}

/**
 * When each connector last listened, with each of its gaps that ended after `sinceTs` (ms), in their order.
 * `connectorId`: only of this one.
 */
export async function listHeard(
  db: Sql,
  sinceTs: number,
  connectorId: number | null = null,
): Promise<HeardRow[]> {
  // One statement: the end of a gap and the time that ended it are seen together.
  const { rows } = await db.query<HeardRow>(
    `select l.connector_id, l.heard_at, g.from_at, g.to_at
       from listening l
       left join listening_gap g
         on g.connector_id = l.connector_id and g.to_at > ms_to_timestamp($1)
      where $2::integer is null or l.connector_id = $2
      order by l.connector_id, g.from_at`,
    [sinceTs, connectorId],
  );
  return rows;
}

/** Forgets gaps that no purpose can ask about any more. A chore of the upkeep. */
export async function forgetGaps(db: Sql, nowTs: number): Promise<void> {
  await db.query('delete from listening_gap where to_at < ms_to_timestamp($1)', [
    nowTs - keptDays * 86_400_000,
  ]);
}
