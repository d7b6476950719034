import type { AlarmChangeKind } from '../contract/alarm.ts';
import type { Sql } from '../db/sql.ts';
import { nameKey, quietNow, type Alarm } from './alarm.ts';
import { listQuiets } from './load.ts';
import { alarmColumns, toAlarm, type AlarmRow } from './rows.ts';
import { saveAlarms } from './store.ts';

/** What changes of an alarm, and when (ms). */
export type StoredChange = {
  alarmId: number;
  change: AlarmChangeKind;
  ts: number;
  set: Partial<Omit<Alarm, 'alarmId' | 'device' | 'of'>>;
};

/**
 * Changes alarms within the caller's transaction, and tells streams of it. All that changes an alarm goes through
 * this, or through the rules (`saveDrafts`). Keeps their rows until the transaction ends, in the order of their
 * numbers. Gives them as they are afterwards; those that are gone are left out.
 */
export async function changeAlarms(tx: Sql, changes: readonly StoredChange[]): Promise<Alarm[]> {
  if (changes.length === 0) return [];
  const byId = new Map<number, StoredChange[]>();
  for (const change of changes)
    byId.set(change.alarmId, [...(byId.get(change.alarmId) ?? []), change]);
  const found = await lockAlarms(tx, [...byId.keys()]);
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
      around: {
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

async function lockAlarms(tx: Sql, alarmIds: readonly number[]): Promise<Alarm[]> {
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
