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
  const devices = await lockDevices(tx, deviceIds);
  const open = await listOpen(tx, deviceIds);
  const quiets = await listQuiets(tx, deviceIds);
  const loaded = new Map(
    devices.map(({ id, name }): [number, LoadedDevice] => {
      const { snoozes = [], mute = null, known = null } = quiets.get(id) ?? {};
      const carried = known && { known: new Set(known) };
      return [id, { name, open: [], snoozes, mute, carried }];
    }),
  );
  for (const alarm of open) loaded.get(alarm.device.deviceId)?.open.push(alarm);
  return loaded;
}

async function lockDevices(tx: Sql, deviceIds: readonly number[]) {
  const { rows } = await tx.query<{ id: number; name: string }>({
    name: 'alarms-lock-devices',
    text: `
      select id, name from device
       where id = any($1::bigint[]) and account_id is not null order by id for no key update`,
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

/** What quiets a device; `known`: the events that had an alarm, of a device from before there were any. */
export type DeviceQuiets = { snoozes: Snooze[]; mute: Quiet | null; known: string[] | null };

const ms = (column: string) => `trunc(extract(epoch from ${column}) * 1000)::bigint`;

/** By device; those that have none of it are left out. */
export async function listQuiets(
  tx: Sql,
  deviceIds: readonly number[],
): Promise<Map<number, DeviceQuiets>> {
  const { rows } = await tx.query<
    Omit<DeviceQuiets, 'snoozes'> & { deviceId: number; snoozes: Snooze[] | null }
  >({
    name: 'alarms-quiets',
    text: `
      select * from (
        select d.id as "deviceId",
               (select json_agg(json_build_object(
                         'of', json_build_object('puId', pu_id, 'stId', st_id, 'evId', ev_id),
                         'pId', p_id, 'untilTs', ${ms('until_at')}, 'reason', reason, 'by', snoozed_by))
                  from alarm_snooze where device_id = d.id) as snoozes,
               (select json_build_object(
                         'untilTs', ${ms('until_at')}, 'reason', reason, 'by', muted_by)
                  from device_mute where device_id = d.id) as mute,
               (select array(select distinct concat_ws('/', pu_id, st_id, ev_id)
                               from alarm where device_id = d.id)
                  from alarm_upgrade where device_id = d.id) as known
          from unnest($1::bigint[]) as d (id)) as quiets
       where snoozes is not null or mute is not null or known is not null`,
    values: [deviceIds],
  });
  return new Map(
    rows.map(({ deviceId, snoozes, ...rest }) => [deviceId, { snoozes: snoozes ?? [], ...rest }]),
  );
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
