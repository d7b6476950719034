import type { AlarmChangeKind, AlarmNote } from '../contract/alarm.ts';
import { deleteInBatches, documentsOf, jsonSequence, type Sql } from '../db/sql.ts';
import {
  alarmColumns,
  type AlarmRow,
  type AlarmContext,
  foremost,
  insertRows,
  toAlarm,
  toAlarmView,
  updateRows,
  valuesOf,
} from './rows.ts';
import {
  type Alarm,
  type DeviceBefore,
  nameKey,
  type Quiet,
  quietNow,
  type Snooze,
} from './rules.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** An alarm after a transaction, and what the transaction changed. */
export type Changed = {
  alarm: Alarm;
  isNew: boolean;
  /** The changes that streams receive. */
  changes: readonly AlarmChangeKind[];
  context: AlarmContext;
  /** Time of the change, ms. */
  ts: number;
};

/** Reserves numbers for alarms that are to be stored. */
export async function reserveIds(tx: Sql, count: number): Promise<number[]> {
  if (count === 0) return [];
  const { rows } = await tx.query<{ id: number }>({
    name: 'alarms-reserve-ids',
    text: `
      select nextval(pg_get_serial_sequence('alarm', 'id')) as id from generate_series(1, $1::integer)`,
    values: [count],
  });
  return rows.map(({ id }) => id);
}

/**
 * Writes alarms whose devices are locked (`loadDevices`), and the changes for streams. An alarm over the account's
 * quota is deleted when it closes; if the same transaction opened it, it is never written.
 */
export async function saveAlarms(tx: Sql, all: readonly Changed[]): Promise<void> {
  // One that may open again is still needed.
  const isGone = ({ isBeyondQuota, closedTs, againTs }: Alarm) =>
    isBeyondQuota && closedTs !== null && againTs === null;
  const changed = all.filter(({ isNew, alarm }) => !(isNew && isGone(alarm)));
  if (changed.length === 0) return;
  const fresh = changed.filter(({ isNew }) => isNew);
  const known = changed.filter(({ isNew }) => !isNew);
  // Updates first: an event has at most one open alarm, so the old one closes before a new one opens.
  if (known.length > 0)
    await tx.query({
      name: 'alarms-update',
      text: updateRows,
      values: valuesOf(known.map(({ alarm }) => alarm)),
    });
  if (fresh.length > 0)
    await tx.query({
      name: 'alarms-insert',
      text: insertRows,
      values: valuesOf(fresh.map(({ alarm }) => alarm)),
    });
  await writeChanges(tx, changed);
  const gone = known.filter(({ alarm }) => isGone(alarm)).map(({ alarm }) => alarm.alarmId);
  if (gone.length > 0) await tx.query('delete from alarm where id = any($1::bigint[])', [gone]);
}

async function writeChanges(tx: Sql, all: readonly Changed[]): Promise<void> {
  const changed = all.filter(({ changes }) => changes.length > 0);
  if (changed.length === 0) return;
  await tx.query({
    name: 'alarms-changes',
    text: `
      insert into alarm_change (account_id, device_id, device_uuid, ts, body)
      select account_id, device_id, device_uuid, ms_to_timestamp(ts), body::json
        from unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[], ${documentsOf('$5')})
          as c (account_id, device_id, device_uuid, ts, body)`,
    values: [
      changed.map(({ alarm }) => alarm.device.accountId),
      changed.map(({ alarm }) => alarm.device.deviceId),
      changed.map(({ alarm }) => alarm.device.uuid),
      changed.map(({ ts }) => ts),
      jsonSequence(changed.map(bodyOf)),
    ],
  });
}

function bodyOf({ alarm, changes, context }: Changed): string {
  const { alarmId } = alarm;
  return JSON.stringify({
    change: foremost(changes),
    alarmId,
    alarm: toAlarmView(alarm, context),
  });
}

/** A change to an alarm, and its time (ms). */
export type StoredChange = {
  alarmId: number;
  change: AlarmChangeKind;
  ts: number;
  set: Partial<Omit<Alarm, 'alarmId' | 'device' | 'of'>>;
};

/**
 * Changes alarms in the caller's transaction and publishes the changes to streams. All changes to alarms go through
 * this, or through the rules (`saveDrafts`). Locks their rows by ascending number until the transaction ends. Returns
 * the alarms after the change, without those that no longer exist.
 */
export async function changeAlarms(tx: Sql, changes: readonly StoredChange[]): Promise<Alarm[]> {
  if (changes.length === 0) return [];
  const byId = new Map<number, StoredChange[]>();
  for (const change of changes)
    byId.set(change.alarmId, [...(byId.get(change.alarmId) ?? []), change]);
  const found = await lockRows(tx, [...byId.keys()]);
  const deviceIds = [...new Set(found.map(({ device }) => device.deviceId))];
  const names = await listNames(tx, deviceIds);
  const quiets = await listQuiets(tx, deviceIds);
  const changed = found.map((before) => {
    const own = byId.get(before.alarmId) ?? [];
    const ts = own.at(-1)?.ts ?? 0;
    const { deviceId } = before.device;
    const { snoozes = [], mute = null } = quiets.get(deviceId) ?? {};
    const snooze = snoozes.find((one) => nameKey(one.of) === nameKey(before.of));
    const alarm: Alarm = Object.assign(before, ...own.map(({ set }) => set));
    return {
      alarm,
      isNew: false,
      changes: own.map(({ change }) => change),
      context: {
        deviceName: names.get(deviceId) ?? '',
        snoozed: quietNow(snooze, ts),
        muted: quietNow(mute, ts),
      },
      ts,
    };
  });
  await saveAlarms(tx, changed);
  return changed.map(({ alarm }) => alarm);
}

/** Reads and locks alarms by ascending number, without those of removed devices. */
export async function lockRows(tx: Sql, alarmIds: readonly number[]): Promise<Alarm[]> {
  const { rows } = await tx.query<AlarmRow>({
    name: 'alarms-lock',
    text: `
      select ${alarmColumns}
        from alarm a
       where a.id = any($1::bigint[])
         and exists (select from device d where d.id = a.device_id and d.account_id is not null)
       order by a.id
         for no key update`,
    values: [alarmIds],
  });
  return rows.map(toAlarm);
}

async function listNames(tx: Sql, deviceIds: readonly number[]): Promise<Map<number, string>> {
  const { rows } = await tx.query<{ id: number; name: string }>({
    name: 'alarms-device-names',
    text: 'select id, name from device where id = any($1::bigint[])',
    values: [deviceIds],
  });
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** A device whose alarms are to be decided on, and its name. */
export type LoadedDevice = DeviceBefore & { name: string };

/**
 * Reads the open alarms of these devices and locks the devices until the transaction ends: whoever changes alarms first
 * locks their devices, by ascending number. Removed devices are missing from the result.
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
      return [id, { name, open: [], lasting: [], snoozes, mute, carried }];
    }),
  );
  for (const alarm of open)
    loaded.get(alarm.device.deviceId)?.[alarm.closedTs === null ? 'open' : 'lasting'].push(alarm);
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

/** Open alarms, and those that a person closed although they held. */
async function listOpen(tx: Sql, deviceIds: readonly number[]): Promise<Alarm[]> {
  const { rows } = await tx.query<AlarmRow>({
    name: 'alarms-open',
    text: `
      select ${alarmColumns}
        from alarm a
       where a.id = any(array(
               select id from alarm where device_id = any($1::bigint[]) and closed_at is null
                union
               select id from alarm where device_id = any($1::bigint[]) and again_at is not null))
       order by a.id
         for no key update`,
    values: [deviceIds],
  });
  return rows.map(toAlarm);
}

/** Snoozes and mute of a device. `known`: for a device from before alarms existed, the events that have had one. */
type DeviceQuiets = { snoozes: Snooze[]; mute: Quiet | null; known: string[] | null };

const ms = (column: string) => `trunc(extract(epoch from ${column}) * 1000)::bigint`;

/** By device; devices without any of these are missing. */
async function listQuiets(
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

/** Which of these reports are already stored, by `reportName`. */
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
 * For each device, the senses that an alarm waits for because it began too long ago to be announced. Devices without
 * such an alarm are missing.
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

/** How many notes of an alarm are kept. */
const mostNotes = 20;

/** Adds what somebody wrote about an alarm; the oldest notes go. */
export async function addNote(tx: Sql, alarmId: number, note: AlarmNote): Promise<void> {
  await tx.query(
    `update alarm
        set notes = (select json_agg(note order by place)
                       from (select note, place from json_array_elements(notes) with ordinality as n (note, place)
                              union all select $2::json, 1000000
                              order by place desc limit ${mostNotes}) as kept)
      where id = $1`,
    [alarmId, JSON.stringify(note)],
  );
}

/** Adds the notes of another alarm to one, and deletes the other; streams hear that it was removed. */
export async function takeIn(tx: Sql, alarmId: number, otherId: number): Promise<void> {
  await tx.query(
    `update alarm a
        set notes = (select coalesce(json_agg(note order by place), '[]')
                       from (select note, place
                               from (select note, place from json_array_elements(a.notes)
                                       with ordinality as n (note, place)
                                      union all
                                     select note, 1000 + place from json_array_elements(o.notes)
                                       with ordinality as n (note, place)) as both_notes
                              order by place desc limit ${mostNotes}) as kept)
       from alarm o
      where a.id = $1 and o.id = $2`,
    [alarmId, otherId],
  );
  await tx.query('delete from alarm where id = $1', [otherId]);
}

/** Deletes alarms that closed before `beforeTs` (ms), some thousand rows in each transaction. Returns how many. */
export function forgetAlarms(db: Sql, beforeTs: number, signal?: AbortSignal): Promise<number> {
  const deleteSome = (limit: number) =>
    db.query(
      `delete from alarm
        where id = any(array(
          select id from alarm where closed_at < ms_to_timestamp($1) limit $2
             for update skip locked))`,
      [beforeTs, limit],
    );
  return deleteInBatches(deleteSome, { signal });
}

/** The state of an alarm that a message about it mentions. */
export type AlarmNow = {
  alarmId: number;
  acknowledgedTs: number | null;
  snoozedUntilTs: number | null;
  closedTs: number | null;
  /** By its measurements; null if not known. */
  beganTs: number | null;
  overTs: number | null;
  filledTs: number | null;
};

/** Only alarms that still exist. */
export async function listAlarmsNow(sql: Sql, alarmIds: readonly number[]): Promise<AlarmNow[]> {
  const { rows } = await sql.query<AlarmNow>({
    name: 'alarms-now',
    text: `
      select a.id as "alarmId", a.acknowledged_at as "acknowledgedTs", a.closed_at as "closedTs",
             a.began_at as "beganTs", a.over_at as "overTs", a.filled_at as "filledTs",
             s.until_at as "snoozedUntilTs"
        from alarm a
        left join alarm_snooze s
          on s.device_id = a.device_id and s.pu_id = a.pu_id and s.st_id = a.st_id and s.ev_id = a.ev_id
       where a.id = any($1::bigint[])`,
    values: [alarmIds],
  });
  return rows;
}

/**
 * Prevents changes to alarms until the transaction ends. It locks their devices by ascending number, as everybody does
 * who changes alarms.
 */
export async function lockAlarms(tx: Sql, alarmIds: readonly number[]): Promise<void> {
  await tx.query({
    name: 'alarms-lock-devices-of',
    text: `
      select from device
       where id in (select device_id from alarm where id = any($1::bigint[]))
       order by id for no key update`,
    values: [alarmIds],
  });
}

/** That people are told of an alarm: `announcement` counts how often they were. */
export type Announcement = { alarmId: number; announcement: number };

/** A message of each of these announcements reached somebody. */
export async function noteNotified(
  tx: Sql,
  announcements: readonly Announcement[],
  nowTs: WallMs,
): Promise<void> {
  const set = { told: 'told', failures: 0 } as const;
  const alarms = await listUntold(tx, announcements);
  await changeAlarms(
    tx,
    alarms.map(({ alarmId }) => ({ alarmId, change: 'told', ts: nowTs, set })),
  );
}

const pausesMs = [1, 5, 15, 60].map((minutes) => minutes * 60_000);

/**
 * All messages of these announcements have failed: withdraws them, and the timer announces each alarm again, after a
 * longer pause each time.
 */
export async function takeBack(
  tx: Sql,
  announcements: readonly Announcement[],
  nowTs: WallMs,
): Promise<void> {
  const alarms = await listUntold(tx, announcements);
  await changeAlarms(
    tx,
    alarms.map(({ alarmId, failures, acknowledgedTs, closedTs }) => {
      const pauseMs = pausesMs[Math.min(failures, pausesMs.length - 1)] ?? 0;
      const set: Partial<Alarm> = {
        told: 'withdrawn',
        announcedTs: null,
        failures: failures + 1,
        // An alarm that is acknowledged or over is not announced again.
        nextTs: acknowledgedTs === null && closedTs === null ? nowTs + pauseMs : null,
      };
      return { alarmId, change: 'withdrawn', ts: nowTs, set };
    }),
  );
}

/** The alarms, also closed ones, of whose current announcement, one of these, nobody is known to have heard. */
async function listUntold(tx: Sql, announcements: readonly Announcement[]): Promise<Alarm[]> {
  if (announcements.length === 0) return [];
  const { rows } = await tx.query<AlarmRow>({
    name: 'alarms-untold',
    text: `
      select ${alarmColumns} from alarm a
       where (a.id, a.announcement) in (select * from unnest($1::bigint[], $2::integer[]))
         and a.told = 'queued' and a.announced_at is not null`,
    values: [
      announcements.map(({ alarmId }) => alarmId),
      announcements.map(({ announcement }) => announcement),
    ],
  });
  return rows.map(toAlarm);
}
