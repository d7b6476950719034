import type { AlarmState } from '../contract/alarm.ts';
import type { EventName } from '../contract/event.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Alarm, Quiet } from './alarm.ts';
import { alarmColumns, toAlarm, type AlarmRow } from './rows.ts';

/** Which of an account's alarms. `label`: of devices that have it. */
export type AlarmFilter = {
  accountId: number;
  state?: AlarmState | undefined;
  deviceUuid?: string | undefined;
  label?: string | undefined;
  /** Only of devices that have one of these; null: of any. */
  within: readonly string[] | null;
  /** Only this one. */
  alarmId?: number | undefined;
  /** Only older ones than this. */
  beforeId?: number | undefined;
  limit: number;
};

export type FoundAlarm = {
  alarm: Alarm;
  deviceName: string;
  snooze: Quiet | null;
  mute: Quiet | null;
};

type Row = AlarmRow & Pick<FoundAlarm, 'deviceName' | 'snooze' | 'mute'>;

/** By what each state is found in an index. */
const inState: Record<AlarmState, string> = {
  open: 'a.closed_at is null and a.acknowledged_at is null',
  acknowledged: 'a.closed_at is null and a.acknowledged_at is not null',
  closed: 'a.closed_at is not null',
};

const quiet = (of: string, by: string) => `
  (select json_build_object(
            'untilTs', trunc(extract(epoch from ${of}.until_at) * 1000)::bigint,
            'reason', ${of}.reason, 'by', ${of}.${by})
    where ${of}.until_at is not null)`;

/** Has the label, and one of those that a key is confined to. */
const isLabelled = `
  ($3::text is null or d.labels @> array[$3::text]) and ($5::text[] is null or d.labels && $5)`;

/**
 * The newest alarms of devices that are there, or have certain labels, in two steps that read at most an entry of each device and `limit`
 * of each of `limit` devices: a device whose newest alarm is older than those of `limit` others has none of them.
 * Walking all alarms of the account until enough of them fit has no such bound.
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

/** One device of the account, within reach: of another one not even the index is read. */
const ownDevice = `(
  select d.id from device d where d.uuid = $6 and d.account_id = $1 and ${isLabelled})`;

/** Whether the account has removed devices of which something is still to be deleted. */
async function hasRemoved(sql: Sql, accountId: number): Promise<boolean> {
  const { rowCount } = await sql.query('select from removed_device where account_id = $1 limit 1', [
    accountId,
  ]);
  return rowCount === 1;
}

/** An alarm has no such number: all are before it. */
const afterAll = '9223372036854775807';

/** Newest first, `limit` at most. */
export async function listAlarms(
  sql: Sql,
  { accountId, alarmId, state, deviceUuid, label, within, beforeId, limit }: AlarmFilter,
): Promise<FoundAlarm[]> {
  const fits = state ? `and ${inState[state]}` : '';
  // Of open ones a device has few, and an index of its own: without an order, so that nothing else is walked for that.
  const hasMany = state === undefined || state === 'closed';
  const isOfLabel = label !== undefined || within !== null;
  const [one, oneIs] =
    alarmId === undefined ? [deviceUuid, `a.device_id = ${ownDevice}`] : [alarmId, 'a.id = $6'];
  // Those of removed devices are no answer, and there are many until they are deleted: they are not walked either.
  const isPaged =
    one === undefined && (isOfLabel || (hasMany && (await hasRemoved(sql, accountId))));
  const { rows } = await sql.query<Row>(
    `${isPaged ? `with ${newestOfLabelled(fits, hasMany ? 'a.id' : 'a.id + 0')}` : ''}
     select ${alarmColumns}, d.name as "deviceName",
            ${quiet('s', 'snoozed_by')} as snooze, ${quiet('m', 'muted_by')} as mute
       from alarm a
       join device d on d.id = a.device_id and d.account_id = a.account_id
       left join alarm_snooze s using (device_id, pu_id, st_id, ev_id)
       left join device_mute m using (device_id)
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
  return rows.map(({ deviceName, snooze, mute, ...row }) => ({
    alarm: toAlarm(row),
    deviceName,
    snooze,
    mute,
  }));
}

export const noSuchAlarm = () => new DomainError('not-found', 'There is no such alarm.');

/** Throws `not-found`, also for an alarm of somebody else. */
export async function getAlarmDevice(
  sql: Sql,
  { accountId, within }: { accountId: number; within: readonly string[] | null },
  alarmId: number,
): Promise<{ deviceId: number; uuid: string; pId: string; of: EventName }> {
  const { rows } = await sql.query<EventName & { deviceId: number; uuid: string; pId: string }>(
    `select device_id as "deviceId", device_uuid as uuid, p_id as "pId", pu_id as "puId", st_id as "stId",
            ev_id as "evId"
       from alarm a
      where id = $2 and account_id = $1
        and exists (select from device d
                     where d.id = a.device_id and d.account_id = a.account_id
                       and ($3::text[] is null or d.labels && $3))`,
    [accountId, alarmId, within],
  );
  if (!rows[0]) throw noSuchAlarm();
  const { puId, stId, evId, ...rest } = rows[0];
  return { ...rest, of: { puId, stId, evId } };
}
