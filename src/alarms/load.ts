import type { EventName } from '../contract/event.ts';
import type { Sql } from '../db/sql.ts';
import type { Alarm, Quiet, Snooze } from './alarm.ts';
import type { DeviceBefore } from './rules/draft.ts';
import { alarmColumns, toAlarm, type AlarmRow } from './rows.ts';

/** What is known of a device whose alarms are decided on, and its name. */
export type LoadedDevice = DeviceBefore & { name: string };

/**
 * Reads what is open of these devices, and keeps others from changing it until the transaction ends: whoever
 * changes alarms has the rows of their devices first, in the order of their numbers. A device that was removed
 * is not among them.
 */
export async function loadDevices(
  tx: Sql,
  deviceIds: readonly number[],
): Promise<Map<number, LoadedDevice>> {
  const [devices, open, snoozes, mutes, carried] = await Promise.all([
    lockDevices(tx, deviceIds),
    listOpen(tx, deviceIds),
    listSnoozes(tx, deviceIds),
    listMutes(tx, deviceIds),
    listCarried(tx, deviceIds),
  ]);
  const loaded = new Map(
    devices.map(({ id, name }): [number, LoadedDevice] => [
      id,
      { name, open: [], snoozes: [], mute: null, carried: null },
    ]),
  );
  for (const alarm of open) loaded.get(alarm.device.deviceId)?.open.push(alarm);
  for (const { deviceId, ...snooze } of snoozes) loaded.get(deviceId)?.snoozes.push(snooze);
  for (const { deviceId, ...mute } of mutes) Object.assign(loaded.get(deviceId) ?? {}, { mute });
  for (const { deviceId, known } of carried)
    Object.assign(loaded.get(deviceId) ?? {}, { carried: { known: new Set(known) } });
  return loaded;
}

async function lockDevices(tx: Sql, deviceIds: readonly number[]) {
  const { rows } = await tx.query<{ id: number; name: string }>({
    name: 'alarms-lock-devices',
    text: `
      select id, name from device where id = any($1::bigint[]) order by id for no key update`,
    values: [deviceIds],
  });
  return rows;
}

async function listOpen(tx: Sql, deviceIds: readonly number[]): Promise<Alarm[]> {
  const { rows } = await tx.query<AlarmRow>({
    name: 'alarms-open',
    text: `
      select ${alarmColumns}
        from alarm a
       where a.device_id = any($1::bigint[]) and a.closed_at is null
       order by a.id
         for no key update`,
    values: [deviceIds],
  });
  return rows.map(toAlarm);
}

type SnoozeRow = Quiet & EventName & { deviceId: number; pId: string };

export async function listSnoozes(
  tx: Sql,
  deviceIds: readonly number[],
): Promise<(Snooze & { deviceId: number })[]> {
  const { rows } = await tx.query<SnoozeRow>({
    name: 'alarms-snoozes',
    text: `
      select device_id as "deviceId", pu_id as "puId", st_id as "stId", ev_id as "evId", p_id as "pId",
             until_at as "untilTs", reason, snoozed_by as by
        from alarm_snooze
       where device_id = any($1::bigint[])`,
    values: [deviceIds],
  });
  return rows.map(({ puId, stId, evId, ...rest }) => ({ ...rest, of: { puId, stId, evId } }));
}

export async function listMutes(tx: Sql, deviceIds: readonly number[]) {
  const { rows } = await tx.query<Quiet & { deviceId: number }>({
    name: 'alarms-mutes',
    text: `
      select device_id as "deviceId", until_at as "untilTs", reason, muted_by as by
        from device_mute
       where device_id = any($1::bigint[])`,
    values: [deviceIds],
  });
  return rows;
}

/** Devices of the time before there were alarms, with the events that had one since. */
async function listCarried(tx: Sql, deviceIds: readonly number[]) {
  const { rows } = await tx.query<{ deviceId: number; known: string[] }>({
    name: 'alarms-carried',
    text: `
      select u.device_id as "deviceId",
             array(select distinct concat_ws('/', a.pu_id, a.st_id, a.ev_id)
                     from alarm a where a.device_id = u.device_id) as known
        from alarm_upgrade u
       where u.device_id = any($1::bigint[])`,
    values: [deviceIds],
  });
  return rows;
}

/** Which of these reports are stored already, by `reportName`. */
export async function listStoredReports(
  tx: Sql,
  reports: readonly { deviceId: number; ts: number; key: string }[],
): Promise<Set<string>> {
  if (reports.length === 0) return new Set();
  const { rows } = await tx.query<{ deviceId: number; ts: number; key: string }>({
    name: 'alarms-stored-reports',
    text: `
      select e.device_id as "deviceId", e.ts, e.key
        from unnest($1::bigint[], $2::bigint[], $3::text[]) as r (device_id, ts, key)
        join event e
          on e.device_id = r.device_id and e.type = 'sense' and e.ts = ms_to_timestamp(r.ts)
         and e.key = r.key`,
    values: [
      reports.map(({ deviceId }) => deviceId),
      reports.map(({ ts }) => ts),
      reports.map(({ key }) => key),
    ],
  });
  return new Set(rows.map(reportName));
}

export const reportName = ({ deviceId, ts, key }: { deviceId: number; ts: number; key: string }) =>
  `${deviceId} ${ts} ${key}`;

/**
 * By device the senses that one of its alarms waits for: those that began too old to be told. A device that
 * waits for none is not among them.
 */
export async function listWaitingSenses(
  tx: Sql,
  deviceIds: readonly number[],
): Promise<Map<number, ReadonlySet<string>>> {
  const { rows } = await tx.query<{ deviceId: number; sIds: string[] }>({
    name: 'alarms-waiting-senses',
    text: `
      select device_id as "deviceId", array_agg(distinct s_id) as "sIds"
        from alarm
       cross join unnest(s_ids) as s_id
       where device_id = any($1::bigint[]) and closed_at is null and waits_for_fresh
       group by device_id`,
    values: [deviceIds],
  });
  return new Map(rows.map(({ deviceId, sIds }) => [deviceId, new Set(sIds)]));
}
