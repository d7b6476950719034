import type { Sql } from '../db/sql.ts';
import { joinMutes, matching, valuesOf, type FleetFilter } from './fleet-sql.ts';
import type { ListedDevice } from './list-devices.ts';

export type FoundDevice = ListedDevice & {
  id: number;
  /** The one it was given. */
  connectorId: number;
  /** Where it is connected or was heard last; before, the one it was given. */
  heardAt: number;
  serial: string;
  sortKey: string;
  openAlarms: number;
  /** Null: there is none. */
  alarmSinceTs: number | null;
  /** Null: its newest login was not refused. */
  refusedTs: number | null;
  /** Null: it is not muted. */
  mutedUntilTs: number | null;
  /** Null: nobody said why, or it is not muted. */
  mutedReason: string | null;
};

/** As text they sort as the values do, but names: these are compared without upper and lower case. */
const sortKeys = {
  name: { sql: 'lower(d.name)', type: 'text' },
  lastSeenTs: { sql: `coalesce(c.last_seen_at, '-infinity')`, type: 'timestamptz' },
  registeredTs: { sql: 'd.created_at', type: 'timestamptz' },
};

/** A page of the devices that all the filters let through, and one more where there is another page. */
export async function findDevices(
  sql: Sql,
  filter: FleetFilter,
  limit: number,
): Promise<FoundDevice[]> {
  const { cursor } = filter;
  const { key, isDescending } = filter.sort ?? { key: 'registeredTs', isDescending: false };
  const { sql: sortKey, type } = sortKeys[key];
  const [direction, beyond] = isDescending ? ['desc', '<'] : ['asc', '>'];
  const { rows } = await sql.query<FoundDevice>(
    `
      with page as materialized (
        select d.id, d.uuid, d.token_version, d.name, d.labels, s.pu_id, s.st_id, s.state_at,
               c.connected, c.last_seen_at, c.connector_id as heard_at, ${sortKey} as sort_key, (${sortKey})::text as "sortKey"
          from device d
          join device_state s on s.device_id = d.id
          left join presence c on c.device_id = d.id ${joinMutes('$8')}
         where ${matching(filter)}
           and ($11::text is null or (${sortKey}, d.id) ${beyond} ($11::${type}, $12::bigint))
         order by ${sortKey} ${direction}, d.id ${direction}
         limit $13
      ), refused as (
        select r.device_id, max(r.last_at) as "refusedTs"
          from refused_login r
         where r.account_id = $1 and r.is_open and r.device_id = any(array(select id from page))
         group by r.device_id
      )
      select page.*, d.serial,
             d.connector_id as "connectorId",
             coalesce(page.heard_at, d.connector_id) as "heardAt",
             alarms.*, refused."refusedTs", m.until_at as "mutedUntilTs", m.reason as "mutedReason"
        from page
        join device d on d.id = page.id
        left join refused on refused.device_id = page.id ${joinMutes('$8', 'page.id')}
       cross join lateral (
         select count(*)::integer as "openAlarms", min(a.since_at) as "alarmSinceTs"
           from alarm a
          where a.account_id = $1 and a.device_id = page.id and a.closed_at is null) alarms
       order by page.sort_key ${direction}, page.id ${direction}`,
    [...valuesOf(filter), cursor?.[0] ?? null, cursor?.[1] ?? null, limit + 1],
  );
  return rows;
}

/** Of all devices that the filters let through, in the order of their registration. */
export async function selectDevices(sql: Sql, filter: FleetFilter): Promise<string[]> {
  const { rows } = await sql.query<{ uuids: string | null }>(
    `
      select string_agg(d.uuid::text, ',' order by d.created_at, d.id) as uuids
        from device d
        join device_state s on s.device_id = d.id
        left join presence c on c.device_id = d.id ${joinMutes('$8')}
       where ${matching(filter)}`,
    valuesOf(filter),
  );
  return rows[0]?.uuids?.split(',') ?? [];
}

/** How many devices all the filters let through. */
export async function countMatching(sql: Sql, filter: FleetFilter): Promise<number> {
  const { rows } = await sql.query<{ count: number }>(
    `
      select count(*)::integer as count
        from device d
        join device_state s on s.device_id = d.id
        left join presence c on c.device_id = d.id ${joinMutes('$8')}
       where ${matching(filter)}`,
    valuesOf(filter),
  );
  return rows[0]?.count ?? 0;
}
