import type { Sql } from '../db/sql.ts';
import type { Alarm } from './alarm.ts';
import { changeAlarms } from './change-alarms.ts';
import { alarmColumns, toAlarm, type AlarmRow } from './rows.ts';

/** An alarm as a message that goes out about it speaks of it. */
export type AlarmNow = {
  alarmId: number;
  acknowledgedTs: number | null;
  snoozedUntilTs: number | null;
  closedTs: number | null;
};

/** Those that still exist. */
export async function listAlarmsNow(sql: Sql, alarmIds: readonly number[]): Promise<AlarmNow[]> {
  const { rows } = await sql.query<AlarmNow>({
    name: 'alarms-now',
    text: `
      select a.id as "alarmId", a.acknowledged_at as "acknowledgedTs", a.closed_at as "closedTs",
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
 * Keeps others from changing alarms until the transaction ends: by their devices, in the order of their numbers,
 * as all do who change alarms.
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

/** A message of this announcement reached somebody. */
export async function noteTold(
  tx: Sql,
  alarmId: number,
  { announcement, nowTs }: { announcement: number; nowTs: number },
): Promise<void> {
  const alarm = await findStanding(tx, alarmId, announcement);
  if (alarm?.told !== 'queued') return;
  const set = { told: 'told', failures: 0 } as const;
  await changeAlarms(tx, [{ alarmId, change: 'told', ts: nowTs, set }]);
}

const pausesMs = [1, 5, 15, 60].map((minutes) => minutes * 60_000);

/**
 * None of the messages of this announcement reached anybody, and none is left: it is taken back, and the timer
 * tells the alarm again, later each time.
 */
export async function takeBack(
  tx: Sql,
  alarmId: number,
  { announcement, nowTs }: { announcement: number; nowTs: number },
): Promise<void> {
  const alarm = await findStanding(tx, alarmId, announcement);
  if (alarm?.told !== 'queued') return;
  const pauseMs = pausesMs[Math.min(alarm.failures, pausesMs.length - 1)] ?? 0;
  const set: Partial<Alarm> = {
    told: 'withdrawn',
    announcedTs: null,
    failures: alarm.failures + 1,
    // An alarm that somebody has acknowledged is not told again.
    nextTs: alarm.acknowledgedTs === null ? nowTs + pauseMs : null,
  };
  await changeAlarms(tx, [{ alarmId, change: 'withdrawn', ts: nowTs, set }]);
}

/** Open, with this announcement as the one that stands. */
async function findStanding(tx: Sql, alarmId: number, announcement: number): Promise<Alarm | null> {
  const { rows } = await tx.query<AlarmRow>({
    name: 'alarms-standing',
    text: `
      select ${alarmColumns} from alarm a
       where a.id = $1 and a.announcement = $2 and a.announced_at is not null and a.closed_at is null`,
    values: [alarmId, announcement],
  });
  return rows[0] ? toAlarm(rows[0]) : null;
}
