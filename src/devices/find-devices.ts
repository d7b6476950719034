import { awaitingAnswer } from '../contract/profile-state.ts';
import type { Sql } from '../db/sql.ts';
import { textList } from '../db/text-list.ts';
import type { FleetQuery } from './fleet-schema.ts';
import type { ListedDevice } from './list-devices.ts';

/** Which devices are looked for. `labels`: only those that have one of these; null: any. */
export type FleetFilter = FleetQuery & {
  accountId: number;
  labels: readonly string[] | null;
  /** Which mutes have not ended, ms. */
  nowTs: number;
  /** This one alone; nothing is searched for then. */
  uuid?: string;
  /** Ids of connectors whose devices hold no connection, as of `presenceOf`. */
  intermittent: readonly number[];
};

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

/** Mutes that have not ended, as SQL. `now`: the parameter that is the time, ms. */
const joinMutes = (now: string, deviceId = 'd.id') => `
        left join device_mute m on m.device_id = ${deviceId} and m.until_at > ms_to_timestamp(${now}::bigint)`;

/** The account's devices within reach, as SQL: `$1` and `$2`. */
const within = 'd.account_id = $1 and ($2::text[] is null or d.labels && $2)';

const hasProfile = (states: string) => `exists (
  select from device_profile p where p.device_id = d.id and p.state in ${states})`;
const waits = hasProfile(textList(awaitingAnswer));
const runs = hasProfile(`('current')`);

/** What is acknowledged is wrong still. */
const hasAlarm = `
  d.id in (select a.device_id from alarm a where a.account_id = $1 and a.closed_at is null)`;

const isRefused = `
  d.id in (select r.device_id from refused_login r
            where r.account_id = $1 and r.is_open and r.device_id is not null)`;
const refusedFilter = (refused: boolean | undefined) => {
  if (refused === undefined) return 'true';
  return refused ? isRefused : `not (${isRefused})`;
};

const profileFilters = {
  pending: waits,
  current: runs,
  none: `not (${waits} or ${runs})`,
};

/** As text they sort as the values do, but names: these are compared without upper and lower case. */
const sortKeys = {
  name: { sql: 'lower(d.name)', type: 'text' },
  lastSeenTs: { sql: `coalesce(c.last_seen_at, '-infinity')`, type: 'timestamptz' },
  registeredTs: { sql: 'd.created_at', type: 'timestamptz' },
};

const search = `($3::text is null
                  or strpos(lower(d.name), lower($3)) > 0
                  or starts_with(d.uuid::text, lower($3))
                  or strpos(lower(d.configuration->'device'->>'serial'), lower($3)) > 0)`;

/** Whether nobody can tell that it is there, as SQL. `ids`: the parameter with the connectors. */
const isIntermittent = (ids: string) =>
  `(c.connected is not true and coalesce(c.connector_id, d.connector_id) = any(${ids}::integer[]))`;

const presenceFilters = {
  online: 'c.connected',
  offline: `(c.connected is not true and not ${isIntermittent('$10')})`,
  intermittent: isIntermittent('$10'),
};

/** What all the filters let through, as SQL: `$1` to `$10` are what `valuesOf` gives. */
const matching = ({ alarm, refused, profile, uuid, presence }: FleetFilter) => `${within}
             and ${uuid === undefined ? search : 'd.uuid = $3::uuid'}
             and ($4::text is null or d.labels @> array[$4])
             and ($5::boolean is null or coalesce(c.connected, false) = $5)
             and ($6::integer is null or (s.pu_id = $6 and s.st_id = $7::integer))
             and ($9::boolean is null or (m.device_id is not null) = $9)
             and ($10::integer[] is not null and ${presence === undefined ? 'true' : presenceFilters[presence]})
             and ${alarm === undefined ? 'true' : hasAlarm}
             and ${refusedFilter(refused)}
             and ${profile === undefined ? 'true' : profileFilters[profile]}`;

const valuesOf = ({
  accountId,
  labels,
  uuid,
  search,
  label,
  online,
  state,
  ...of
}: FleetFilter) => [
  accountId,
  labels,
  uuid ?? search ?? null,
  label ?? null,
  online ?? null,
  state?.puId ?? null,
  state?.stId ?? null,
  of.nowTs,
  of.muted ?? null,
  of.intermittent,
];

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
      select page.*, coalesce(d.configuration->'device'->>'serial', '') as serial,
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

export type FleetCounts = {
  all: number;
  online: number;
  offline: number;
  intermittent: number;
  /** With an open alarm. */
  alarm: number;
  /** Their newest login was refused. */
  refused: number;
  /** Whose mute has not ended. */
  muted: number;
  pendingProfile: number;
};

const none: FleetCounts = {
  all: 0,
  online: 0,
  offline: 0,
  intermittent: 0,
  alarm: 0,
  refused: 0,
  muted: 0,
  pendingProfile: 0,
};

/** Of all devices within reach, whatever is looked for. */
export async function countDevices(
  sql: Sql,
  filter: Pick<FleetFilter, 'accountId' | 'labels' | 'nowTs' | 'intermittent'>,
): Promise<FleetCounts> {
  const { accountId, labels, nowTs, intermittent } = filter;
  const { rows } = await sql.query<FleetCounts>(
    `
      select count(*)::integer as all,
             (count(*) filter (where c.connected))::integer as online,
             (count(*) filter (where c.connected is not true and not ${isIntermittent('$4')}))::integer
               as offline,
             (count(*) filter (where ${isIntermittent('$4')}))::integer as intermittent,
             (count(*) filter (where ${hasAlarm}))::integer as alarm,
             (count(*) filter (where ${isRefused}))::integer as refused,
             count(m.device_id)::integer as muted,
             (count(*) filter (where ${waits}))::integer as "pendingProfile"
        from device d
        left join presence c on c.device_id = d.id ${joinMutes('$3')}
       where ${within}`,
    [accountId, labels, nowTs, intermittent],
  );
  return rows[0] ?? none;
}
