import {
  AlarmChangeKind,
  type AlarmNote,
  type AlarmChangeRow,
  type AlarmState,
  type AlarmValue,
  type AlarmView,
} from '../contract/alarm.ts';
import { severityOf } from '../contract/actions.ts';
import type { EventName } from '../contract/event.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { askedOf } from './values.ts';
import { type Alarm, nameKey, type Quiet, silenceOf } from './rules.ts';

/** A row as it is read, with flat columns for places and events. */
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

/** The select list of an `AlarmRow`, for a table aliased `a`. */
export const alarmColumns = `
  a.id as "alarmId", a.device_id as "deviceId", a.device_uuid as uuid, a.account_id as "accountId",
  a.p_id as "pId", a.pu_id as "puId", a.st_id as "stId", a.ev_id as "evId",
  a.purpose_name as "purposeName", a.state_name as "stateName", a.event_name as "eventName", a.tells,
  a.is_reported as "isReported", a.is_global as "isGlobal", a.since_at as "sinceTs",
  a.last_firing_at as "lastFiringTs", a.firings, a.began_at as "beganTs",
  a.began_arrived_at as "beganArrivedTs", a.over_at as "overTs", a.over_arrived_at as "overArrivedTs",
  a.filled_at as "filledTs",
  a.event, a.actions, a.s_ids as "sIds", a.conditions, a.fired_with as "firedWith",
  a.moved_pu_id as "movedPuId", a.moved_st_id as "movedStId", a.ends_at as "endsTs", a.ends_as as "endsAs",
  a.expires_at as "expiresTs", a.told, a.not_notified as "notNotified", a.announced_at as "announcedTs",
  a.announcement, a.failures, a.next_at as "nextTs", a.repeat_ms as "repeatMs",
  a.waits_for_fresh as "waitsForFresh", a.looked_ts as "lookedTs", a.acknowledged_at as "acknowledgedTs",
  a.acknowledged_by as "acknowledgedBy", a.closed_at as "closedTs", a.closed_by as "closedBy",
  a.is_beyond_quota as "isBeyondQuota", a.again_at as "againTs", a.closed_with as "closedWith"`;

export function toAlarm(row: AlarmRow): Alarm {
  const { deviceId, uuid, accountId, puId, stId, evId, movedPuId, movedStId, ...rest } = row;
  return {
    ...rest,
    device: { deviceId, uuid, accountId },
    of: { puId, stId, evId },
    movedTo: movedPuId === null || movedStId === null ? null : { puId: movedPuId, stId: movedStId },
  };
}

/** The columns that a change may touch, each with its type in JSON and the SQL for its value. */
const changing = [
  ['last_firing_at', 'bigint', 'ms_to_timestamp(r.last_firing_at)'],
  ['firings', 'integer', 'r.firings'],
  ['over_at', 'bigint', 'ms_to_timestamp(r.over_at)'],
  ['over_arrived_at', 'bigint', 'ms_to_timestamp(r.over_arrived_at)'],
  ['filled_at', 'bigint', 'ms_to_timestamp(r.filled_at)'],
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
  ['extreme_due_at', 'bigint', 'ms_to_timestamp(r.extreme_due_at)'],
  ['severity', 'text', 'r.severity'],
  ['again_at', 'bigint', 'ms_to_timestamp(r.again_at)'],
  ['closed_with', 'json', 'r.closed_with'],
] as const;

/** The columns that never change after the alarm opens. */
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
  ['began_at', 'bigint', 'ms_to_timestamp(r.began_at)'],
  ['began_arrived_at', 'bigint', 'ms_to_timestamp(r.began_arrived_at)'],
  ['s_ids', 'text[]', 'r.s_ids'],
  ['conditions', 'json', 'r.conditions'],
  ['fired_with', 'json', 'r.fired_with'],
  ['repeat_ms', 'bigint', 'r.repeat_ms'],
  ['is_beyond_quota', 'boolean', 'r.is_beyond_quota'],
] as const;

const all = [...fixed, ...changing];
type Column = (typeof all)[number][0];

/** These rows as a table `r`; `valuesOf` makes `$1` to `$3`. */
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

/** The parameters of both statements, in one fixed order, because rows must be locked in one order. */
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
    began_at: alarm.beganTs,
    began_arrived_at: alarm.beganArrivedTs,
    over_at: alarm.overTs,
    over_arrived_at: alarm.overArrivedTs,
    filled_at: alarm.filledTs,
    s_ids: alarm.sIds,
    conditions: alarm.conditions,
    fired_with: alarm.firedWith,
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
    extreme_due_at:
      alarm.closedTs !== null && (askedOf(alarm, alarm.closedTs) ?? silenceOf(alarm))
        ? alarm.closedTs
        : null,
    severity: severityOf(alarm.actions),
    again_at: alarm.againTs,
    closed_with: alarm.closedWith,
  };
}

/** Selects alarms of an account. `label`: of devices that have it. */
type AlarmFilter = {
  accountId: number;
  state?: AlarmState | undefined;
  deviceUuid?: string | undefined;
  label?: string | undefined;
  /** Only of devices that have one of these labels; null: of any device. */
  within: readonly string[] | null;
  /** Only this alarm. */
  alarmId?: number | undefined;
  /** Only alarms older than this one. */
  beforeId?: number | undefined;
  limit: number;
};

export type FoundAlarm = {
  alarm: Alarm;
  deviceName: string;
  snooze: Quiet | null;
  mute: Quiet | null;
  /** What is kept of a closed alarm; `isDue`: its timer looks again. */
  extreme: AlarmValue[];
  isDue: boolean;
  notes: AlarmNote[];
};

type Row = AlarmRow & Omit<FoundAlarm, 'alarm'>;

/** The condition by which an index finds each state. */
export const inState: Record<AlarmState, string> = {
  open: 'a.closed_at is null and a.acknowledged_at is null',
  acknowledged: 'a.closed_at is null and a.acknowledged_at is not null',
  closed: 'a.closed_at is not null',
};

const quiet = (of: string, by: string) => `
  (select json_build_object(
            'untilTs', trunc(extract(epoch from ${of}.until_at) * 1000)::bigint,
            'reason', ${of}.reason, 'by', ${of}.${by})
    where ${of}.until_at is not null)`;

const selectFound = `
  select ${alarmColumns}, d.name as "deviceName",
         a.notes, a.extreme, a.extreme_due_at is not null as "isDue",
         ${quiet('s', 'snoozed_by')} as snooze, ${quiet('m', 'muted_by')} as mute
    from alarm a
    join device d on d.id = a.device_id and d.account_id = a.account_id
    left join alarm_snooze s using (device_id, pu_id, st_id, ev_id)
    left join device_mute m using (device_id)`;

/** The device has the label, and one of those that a key is restricted to. */
const isLabelled = `
  ($3::text is null or d.labels @> array[$3::text]) and ($5::text[] is null or d.labels && $5)`;

/**
 * The newest alarms of devices that still exist, or that have certain labels, in two steps. They read at most one entry
 * of each device, then `limit` entries of `limit` devices: a device whose newest alarm is older than those of `limit`
 * other devices cannot contribute. Walking all alarms of the account until enough of them fit has no such bound.
 */
const newestOfLabelled = (fits: string, inOrder: string) => `
  newest as (
    select d.id as device_id, a.id
      from device d
     cross join lateral (
       select a.id from alarm a
        where a.device_id = d.id and a.id < $2 ${fits} order by ${inOrder} desc limit 1) a
     where d.account_id = $1 and ${isLabelled}
     order by a.id desc limit $4
  ), page as (
    select a.id
      from newest n
     cross join lateral (
       select a.id from alarm a
        where a.device_id = n.device_id and a.id < $2 ${fits} order by ${inOrder} desc limit $4) a
     order by a.id desc limit $4
  )`;

/** One device of the account, within the allowed labels: for any other device not even the index is read. */
const ownDevice = `(
  select d.id from device d where d.uuid = $6 and d.account_id = $1 and ${isLabelled})`;

/** Whether the account has removed devices whose data is still being deleted. */
async function hasRemoved(sql: Sql, accountId: number): Promise<boolean> {
  const { rowCount } = await sql.query('select from removed_device where account_id = $1 limit 1', [
    accountId,
  ]);
  return rowCount === 1;
}

/** Greater than any alarm's number. */
const afterAll = '9223372036854775807';

/** Newest first, at most `limit`. */
export async function listAlarms(
  sql: Sql,
  { accountId, alarmId, state, deviceUuid, label, within, beforeId, limit }: AlarmFilter,
): Promise<FoundAlarm[]> {
  const fits = state ? `and ${inState[state]}` : '';
  // A device has few open alarms, and an index of them. `a.id + 0` keeps the planner off another index for the order.
  const hasMany = state === undefined || state === 'closed';
  const isOfLabel = label !== undefined || within !== null;
  const [one, oneIs] =
    alarmId === undefined ? [deviceUuid, `a.device_id = ${ownDevice}`] : [alarmId, 'a.id = $6'];
  // Alarms of removed devices are not in the answer, and until they are deleted there are many: do not walk them.
  const isPaged =
    one === undefined && (isOfLabel || (hasMany && (await hasRemoved(sql, accountId))));
  const { rows } = await sql.query<Row>(
    `${isPaged ? `with ${newestOfLabelled(fits, hasMany ? 'a.id' : 'a.id + 0')}` : ''}
     ${selectFound}
      where a.account_id = $1 and a.id < $2 and ${isLabelled} ${fits}
        ${isPaged ? 'and a.id = any(array(select id from page))' : ''}
        ${one === undefined ? '' : `and ${oneIs}`}
      order by a.id desc
      limit $4`,
    [
      accountId,
      beforeId ?? afterAll,
      label ?? null,
      limit,
      within,
      ...(one === undefined ? [] : [one]),
    ],
  );
  return rows.map(toFound);
}

/** These alarms of an account in this order, without those that are gone. */
export async function listAlarmsById(
  sql: Sql,
  accountId: number,
  ids: readonly number[],
): Promise<FoundAlarm[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql.query<Row>({
    name: 'alarms-by-id',
    text: `${selectFound} where a.account_id = $1 and a.id = any($2::bigint[])`,
    values: [accountId, ids],
  });
  const found = new Map(rows.map((row) => [row.alarmId, toFound(row)]));
  return ids.flatMap((id) => found.get(id) ?? []);
}

function toFound({ deviceName, snooze, mute, extreme, isDue, notes, ...row }: Row): FoundAlarm {
  return {
    alarm: toAlarm(row),
    deviceName,
    snooze,
    mute,
    extreme,
    isDue,
    notes,
  };
}

export const noSuchAlarm = () => new DomainError('not-found', 'There is no such alarm.');

/** An alarm's device, profile and event. */
export type AlarmDevice = {
  alarmId: number;
  deviceId: number;
  uuid: string;
  pId: string;
  of: EventName;
};

/** Those of these alarms that the account has, on devices that have one of the labels (null: on any). */
export async function findAlarmDevices(
  sql: Sql,
  { accountId, within }: { accountId: number; within: readonly string[] | null },
  alarmIds: readonly number[],
): Promise<AlarmDevice[]> {
  const { rows } = await sql.query<EventName & Omit<AlarmDevice, 'of'>>(
    `select id as "alarmId", device_id as "deviceId", device_uuid as uuid, p_id as "pId", pu_id as "puId",
            st_id as "stId", ev_id as "evId"
       from alarm a
      where id = any($2::bigint[]) and account_id = $1
        and exists (select from device d
                     where d.id = a.device_id and d.account_id = a.account_id
                       and ($3::text[] is null or d.labels && $3))`,
    [accountId, alarmIds, within],
  );
  return rows.map(({ puId, stId, evId, ...rest }) => ({ ...rest, of: { puId, stId, evId } }));
}

/** Names longer than this together take more space than the rest of an alarm. */
const nameBytes = 300;

/**
 * How many events an alarm counts as when it opens or goes on: 1 unless its names are long. Every change writes them
 * again.
 */
export function countsAs(
  { purposeName, stateName, eventName }: Pick<Alarm, 'purposeName' | 'stateName' | 'eventName'>,
  deviceName: string,
): number {
  const names = JSON.stringify([purposeName, stateName, eventName, deviceName]);
  return Math.max(1, Math.ceil(Buffer.byteLength(names) / nameBytes));
}

type Position = { snapshot: string; ts: number };

/**
 * Alarms that changed between two positions of a stream, each once and in its current state. Each change itself is kept
 * only as long as the feed. Alarms of removed devices are gone.
 */
export async function* walkChangedAlarms(
  sql: Sql,
  { accountId, deviceId }: { accountId: number; deviceId: number | null },
  { from, to }: { from: Position; to: Position },
  limit: number,
): AsyncGenerator<AlarmChangeRow[]> {
  for (let after = 0; ;) {
    const { rows } = await sql.query<AlarmRow & { deviceName: string }>({
      name: 'alarms-changed',
      text: `
        select ${alarmColumns}, d.name as "deviceName"
          from alarm a
          join device d on d.id = a.device_id and d.account_id = a.account_id
         where a.account_id = $1
           and ($2::bigint is null or a.device_id = $2)
           and a.id > $3
           and a.xact >= pg_snapshot_xmin($4::pg_snapshot)
           and not pg_visible_in_snapshot(a.xact, $4::pg_snapshot)
           and pg_visible_in_snapshot(a.xact, $5::pg_snapshot)
         order by a.id
         limit $6`,
      values: [accountId, deviceId, after, from.snapshot, to.snapshot, limit],
    });
    if (rows.length > 0) yield rows.map((row) => toRow(row, to.ts));
    if (rows.length < limit) return;
    after = rows.at(-1)?.alarmId ?? after;
  }
}

function toRow({ deviceName, ...row }: AlarmRow & { deviceName: string }, ts: number) {
  const alarm = toAlarm(row);
  const { alarmId } = alarm;
  const change = alarm.closedTs === null ? ('fired' as const) : ('closed' as const);
  const context = { deviceName, snoozed: null, muted: null };
  const body = { change, alarmId, alarm: toAlarmView(alarm, context) };
  const { deviceId, uuid } = alarm.device;
  return { type: 'alarm' as const, ts, seq: 0, body, deviceId, uuid };
}

/** What clients see of an alarm that is not in its row. */
export type AlarmContext = {
  deviceName: string;
  snoozed: Quiet | null;
  muted: Quiet | null;
  /** Replaces the values of its newest firing. */
  values?: AlarmView['values'];
};

/** An alarm as clients see it. */
export function toAlarmView(alarm: Alarm, context: AlarmContext): AlarmView {
  const { device, of, event } = alarm;
  const { alarmId, pId, purposeName, stateName, eventName, sinceTs, lastFiringTs, firings } = alarm;
  const { told, notNotified, announcedTs, acknowledgedTs, acknowledgedBy } = alarm;
  return {
    alarmId,
    deviceAuthUuid: device.uuid,
    deviceName: context.deviceName,
    pId,
    puId: of.puId,
    purposeName,
    stId: of.stId,
    stateName,
    evId: of.evId,
    eventName,
    state: stateOf(alarm),
    severity: severityOf(alarm.actions),
    sinceTs,
    lastFiringTs,
    firings,
    beganTs: alarm.beganTs,
    beganArrivedTs: alarm.beganArrivedTs,
    overTs: alarm.overTs,
    overArrivedTs: alarm.overArrivedTs,
    filledTs: alarm.filledTs,
    values: context.values ?? event.cause.senses,
    told,
    notNotified,
    announcedTs,
    acknowledgedTs,
    acknowledgedBy,
    snoozed: context.snoozed,
    muted: context.muted,
    endsTs: alarm.endsTs,
    closedTs: alarm.closedTs,
    closedBy: alarm.closedBy,
  };
}

function stateOf({ closedTs, acknowledgedTs }: Alarm): AlarmState {
  if (closedTs !== null) return 'closed';
  return acknowledgedTs === null ? 'open' : 'acknowledged';
}

/** The one of several changes that a stream names; the enumeration is in order of precedence. */
export function foremost(changes: readonly AlarmChangeKind[]): AlarmChangeKind {
  return AlarmChangeKind.options.find((kind) => changes.includes(kind)) ?? 'fired';
}
