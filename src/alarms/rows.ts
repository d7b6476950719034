import { nameKey, type Alarm } from './alarm.ts';

/** A row as it is read: numbers of places and events stand beside each other. */
export type AlarmRow = Omit<Alarm, 'device' | 'of' | 'movedTo'> & {
  deviceId: number;
  uuid: string;
  accountId: number;
  puId: number;
  stId: number;
  evId: number;
  movedPuId: number | null;
  movedStId: number | null;
};

/** SQL for all of an `AlarmRow`, of a table that is called `a`. */
export const alarmColumns = `
  a.id as "alarmId", a.device_id as "deviceId", a.device_uuid as uuid, a.account_id as "accountId",
  a.p_id as "pId", a.pu_id as "puId", a.st_id as "stId", a.ev_id as "evId",
  a.purpose_name as "purposeName", a.state_name as "stateName", a.event_name as "eventName", a.tells,
  a.is_reported as "isReported", a.is_global as "isGlobal", a.since_at as "sinceTs",
  a.last_firing_at as "lastFiringTs", a.firings, a.event, a.actions, a.s_ids as "sIds",
  a.moved_pu_id as "movedPuId", a.moved_st_id as "movedStId", a.ends_at as "endsTs", a.ends_as as "endsAs",
  a.expires_at as "expiresTs", a.told, a.not_notified as "notNotified", a.announced_at as "announcedTs",
  a.announcement, a.failures, a.next_at as "nextTs", a.repeat_ms as "repeatMs",
  a.waits_for_fresh as "waitsForFresh", a.looked_ts as "lookedTs", a.acknowledged_at as "acknowledgedTs",
  a.acknowledged_by as "acknowledgedBy", a.closed_at as "closedTs", a.closed_by as "closedBy",
  a.is_beyond_quota as "isBeyondQuota"`;

export function toAlarm(row: AlarmRow): Alarm {
  const { deviceId, uuid, accountId, puId, stId, evId, movedPuId, movedStId, ...rest } = row;
  return {
    ...rest,
    device: { deviceId, uuid, accountId },
    of: { puId, stId, evId },
    movedTo: movedPuId === null || movedStId === null ? null : { puId: movedPuId, stId: movedStId },
  };
}

/** The columns that a change may touch, each with its type in JSON and SQL for its value. */
const changing = [
  ['last_firing_at', 'bigint', 'ms_to_timestamp(r.last_firing_at)'],
  ['firings', 'integer', 'r.firings'],
  ['moved_pu_id', 'integer', 'r.moved_pu_id'],
  ['moved_st_id', 'integer', 'r.moved_st_id'],
  ['ends_at', 'bigint', 'ms_to_timestamp(r.ends_at)'],
  ['ends_as', 'text', 'r.ends_as'],
  ['expires_at', 'bigint', 'ms_to_timestamp(r.expires_at)'],
  ['told', 'text', 'r.told'],
  ['not_notified', 'text', 'r.not_notified'],
  ['announced_at', 'bigint', 'ms_to_timestamp(r.announced_at)'],
  ['announcement', 'integer', 'r.announcement'],
  ['failures', 'integer', 'r.failures'],
  ['next_at', 'bigint', 'ms_to_timestamp(r.next_at)'],
  ['waits_for_fresh', 'boolean', 'r.waits_for_fresh'],
  ['looked_ts', 'bigint', 'r.looked_ts'],
  ['acknowledged_at', 'bigint', 'ms_to_timestamp(r.acknowledged_at)'],
  ['acknowledged_by', 'text', 'r.acknowledged_by'],
  ['closed_at', 'bigint', 'ms_to_timestamp(r.closed_at)'],
  ['closed_by', 'text', 'r.closed_by'],
] as const;

/** Those that stay as they were when the alarm opened. */
const fixed = [
  ['id', 'bigint', 'r.id'],
  ['account_id', 'bigint', 'r.account_id'],
  ['device_id', 'bigint', 'r.device_id'],
  ['device_uuid', 'uuid', 'r.device_uuid'],
  ['p_id', 'text', 'r.p_id'],
  ['pu_id', 'integer', 'r.pu_id'],
  ['st_id', 'integer', 'r.st_id'],
  ['ev_id', 'integer', 'r.ev_id'],
  ['purpose_name', 'text', 'r.purpose_name'],
  ['state_name', 'text', 'r.state_name'],
  ['event_name', 'text', 'r.event_name'],
  ['tells', 'text', 'r.tells'],
  ['is_reported', 'boolean', 'r.is_reported'],
  ['is_global', 'boolean', 'r.is_global'],
  ['since_at', 'bigint', 'ms_to_timestamp(r.since_at)'],
  ['s_ids', 'text[]', 'r.s_ids'],
  ['repeat_ms', 'bigint', 'r.repeat_ms'],
  ['is_beyond_quota', 'boolean', 'r.is_beyond_quota'],
] as const;

const all = [...fixed, ...changing];
type Column = (typeof all)[number][0];

/** What `given` has, as a table `r` of these rows; `$1` to `$3` are what `valuesOf` gives. */
const givenRows = `rows from (
  json_to_recordset($1::json) as (${all.map(([name, type]) => `${name} ${type}`).join(', ')}),
  unnest($2::text[]), unnest($3::text[])) as r (${all.map(([name]) => name).join(', ')}, event, actions)`;

export const insertRows = `
  insert into alarm (${all.map(([name]) => name).join(', ')}, event, actions)
  overriding system value
  select ${all.map(([, , value]) => value).join(', ')}, r.event::json, r.actions::json from ${givenRows}`;

export const updateRows = `
  update alarm a
     set ${changing.map(([name, , value]) => `${name} = ${value}`).join(', ')},
         event = r.event::json, actions = r.actions::json, xact = pg_current_xact_id()
    from ${givenRows}
   where a.id = r.id`;

/** The values of both statements, in the order of their keys: whoever locks several does so in one order. */
export function valuesOf(alarms: readonly Alarm[]): unknown[] {
  const sorted = alarms.toSorted(
    (one, other) =>
      one.device.deviceId - other.device.deviceId ||
      nameKey(one.of).localeCompare(nameKey(other.of)) ||
      one.alarmId - other.alarmId,
  );
  return [
    JSON.stringify(sorted.map(toColumns)),
    sorted.map(({ event }) => JSON.stringify(event)),
    sorted.map(({ actions }) => JSON.stringify(actions)),
  ];
}

function toColumns(alarm: Alarm): Record<Column, unknown> {
  return {
    id: alarm.alarmId,
    account_id: alarm.device.accountId,
    device_id: alarm.device.deviceId,
    device_uuid: alarm.device.uuid,
    p_id: alarm.pId,
    pu_id: alarm.of.puId,
    st_id: alarm.of.stId,
    ev_id: alarm.of.evId,
    purpose_name: alarm.purposeName,
    state_name: alarm.stateName,
    event_name: alarm.eventName,
    tells: alarm.tells,
    is_reported: alarm.isReported,
    is_global: alarm.isGlobal,
    since_at: alarm.sinceTs,
    s_ids: alarm.sIds,
    repeat_ms: alarm.repeatMs,
    is_beyond_quota: alarm.isBeyondQuota,
    last_firing_at: alarm.lastFiringTs,
    firings: Math.min(alarm.firings, 2_147_483_647),
    moved_pu_id: alarm.movedTo?.puId,
    moved_st_id: alarm.movedTo?.stId,
    ends_at: alarm.endsTs,
    ends_as: alarm.endsAs,
    expires_at: alarm.expiresTs,
    told: alarm.told,
    not_notified: alarm.notNotified,
    announced_at: alarm.announcedTs,
    announcement: alarm.announcement,
    failures: alarm.failures,
    next_at: alarm.nextTs,
    waits_for_fresh: alarm.waitsForFresh,
    looked_ts: alarm.lookedTs,
    acknowledged_at: alarm.acknowledgedTs,
    acknowledged_by: alarm.acknowledgedBy,
    closed_at: alarm.closedTs,
    closed_by: alarm.closedBy,
  };
}
