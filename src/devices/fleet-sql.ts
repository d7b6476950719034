import { awaitingAnswer } from '../contract/profile.ts';
import { textList } from '../db/text-list.ts';
import type { FleetQuery } from './fleet-schema.ts';

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

/** Mutes that have not ended, as SQL. `now`: the parameter that is the time, ms. */
export const joinMutes = (now: string, deviceId = 'd.id') => `
        left join device_mute m on m.device_id = ${deviceId} and m.until_at > ms_to_timestamp(${now}::bigint)`;

/** The account's devices within reach, as SQL: `$1` and `$2`. */
export const within = 'd.account_id = $1 and ($2::text[] is null or d.labels && $2)';

const hasProfile = (states: string) => `exists (
  select from device_profile p where p.device_id = d.id and p.state in ${states})`;
export const waits = hasProfile(textList(awaitingAnswer));
const runs = hasProfile(`('current')`);

/** What is acknowledged is wrong still. */
export const hasAlarm = `
  d.id in (select a.device_id from alarm a where a.account_id = $1 and a.closed_at is null)`;

export const isRefused = `
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

const search = `($3::text is null
                  or strpos(lower(d.name), lower($3)) > 0
                  or starts_with(d.uuid::text, lower($3))
                  or strpos(lower(d.serial), lower($3)) > 0)`;

/** Whether nobody can tell that it is there, as SQL. `ids`: the parameter with the connectors. */
export const isIntermittent = (ids: string) =>
  `(c.connected is not true and coalesce(c.connector_id, d.connector_id) = any(${ids}::integer[]))`;

const presenceFilters = {
  online: 'c.connected',
  offline: `(c.connected is not true and not ${isIntermittent('$10')})`,
  intermittent: isIntermittent('$10'),
};

/** What all the filters let through, as SQL: `$1` to `$10` are what `valuesOf` gives. */
export const matching = ({ alarm, refused, profile, uuid, presence }: FleetFilter) => `${within}
             and ${uuid === undefined ? search : 'd.uuid = $3::uuid'}
             and ($4::text is null or d.labels @> array[$4])
             and ($5::boolean is null or coalesce(c.connected, false) = $5)
             and ($6::integer is null or (s.pu_id = $6 and s.st_id = $7::integer))
             and ($9::boolean is null or (m.device_id is not null) = $9)
             and ($10::integer[] is not null and ${presence === undefined ? 'true' : presenceFilters[presence]})
             and ${alarm === undefined ? 'true' : hasAlarm}
             and ${refusedFilter(refused)}
             and ${profile === undefined ? 'true' : profileFilters[profile]}`;

export const valuesOf = ({
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
