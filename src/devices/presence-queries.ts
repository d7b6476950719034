import type { Sql } from '../db/sql.ts';
import type { SavedSighting } from './presence-notices.ts';

/** Nobody is connected at the connector. Gives the accounts whose devices were. */
export async function clearConnected(db: Sql, connectorId: number): Promise<number[]> {
  const { rows } = await db.query<{ accountId: number }>(
    `
      with cleared as (
        update presence set connected = false where connector_id = $1 and connected
        returning device_id
      )
      select distinct d.account_id as "accountId"
        from cleared
        join device d on d.id = cleared.device_id and d.account_id is not null`,
    [connectorId],
  );
  return rows.map(({ accountId }) => accountId);
}

/** Gives what stands there now: a device may be connected at another connector. */
export async function saveSightings(
  db: Sql,
  connectorId: number,
  changes: { deviceId: number; connections: number; seenTs: number }[],
): Promise<SavedSighting[]> {
  if (changes.length === 0) return [];
  // A disconnect here must not undo a later connect at another connector. Devices of a bridge have no
  // connection that is seen: they are where they were heard last.
  const { rows } = await db.query<SavedSighting>(
    `
      insert into presence as p (device_id, connector_id, connected, last_seen_at)
      select d.id, $1, n.connected, ms_to_timestamp(n.seen_ts)
        from unnest($2::bigint[], $3::boolean[], $4::bigint[]) as n (device_id, connected, seen_ts)
        join device d on d.id = n.device_id and d.account_id is not null
       order by d.id
      on conflict (device_id) do update
         set connected = case when excluded.connected or p.connector_id = $1
                              then excluded.connected else p.connected end,
             connector_id = case when excluded.connected then $1
                                 when p.connected then p.connector_id
                                 when excluded.last_seen_at >= coalesce(p.last_seen_at, '-infinity')
                                 then $1 else p.connector_id end,
             last_seen_at = greatest(p.last_seen_at, excluded.last_seen_at)
      returning device_id as "deviceId", connected, connector_id as "connectorId",
                last_seen_at as "seenTs"`,
    [
      connectorId,
      changes.map(({ deviceId }) => deviceId),
      changes.map(({ connections }) => connections > 0),
      changes.map(({ seenTs }) => seenTs),
    ],
  );
  return rows;
}
