import type { AlarmChangeKind } from '../contract/alarm.ts';
import type { Sql } from '../db/sql.ts';
import { alarmColumns, type AlarmRow, countsAs, toAlarm } from './rows.ts';
import { type Alarm, type AlarmDraft, type DeviceDraft, nameKey, quietNow } from './rules.ts';
import {
  changeAlarms,
  type Changed,
  type ClosedAlarm,
  type DecideDeps,
  type LoadedDevice,
  type Opened,
  reserveIds,
  saveAlarms,
  type AlarmNotifier,
} from './store.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** A device as the rules left it and as it was read, and when its last signal happened (ms). */
export type Drafted = {
  draft: DeviceDraft;
  device: LoadedDevice;
  ts: number;
};

const alarmsOf = ({ draft }: Pick<Drafted, 'draft'>): AlarmDraft[] => [
  ...draft.closed,
  ...draft.open.values(),
];

/** Stores the results of the rules, and does what follows from closed alarms. */
export async function saveDrafts(
  tx: Sql,
  drafted: ReadonlyMap<number, Drafted>,
  deps: AlarmNotifier & Partial<Pick<DecideDeps, 'mayTellFirings'>>,
): Promise<void> {
  const all = [...drafted.values()];
  await endSnoozes(tx, drafted);
  await saveAlarms(
    tx,
    all.flatMap((each) => changedOf(each, deps.mayTellFirings)),
  );
  await finishClosed(tx, all.flatMap(alarmsOf), deps);
}

/** Assigns numbers to opened alarms. Returns, by account, how many events they count as, as far as the quota allows. */
export async function giveIds(
  tx: Sql,
  drafted: ReadonlyMap<number, Drafted>,
  deps: Pick<DecideDeps, 'eventsLeft'>,
): Promise<Opened> {
  const opened = [...drafted.values()].flatMap((each) =>
    alarmsOf(each)
      .filter(({ isNew }) => isNew)
      .map(({ alarm }) => ({ alarm, deviceName: each.device.name })),
  );
  const ids = await reserveIds(tx, opened.length);
  const counts = new Map<number, number>();
  for (const [place, { alarm, deviceName }] of opened.entries()) {
    const { accountId } = alarm.device;
    const before = counts.get(accountId) ?? 0;
    alarm.alarmId = ids[place] ?? 0;
    alarm.isBeyondQuota = deps.eventsLeft(accountId) <= before;
    if (!alarm.isBeyondQuota) counts.set(accountId, before + countsAs(alarm, deviceName));
  }
  return counts;
}

/** Snoozes belong to events of one profile, and so do announcements from before alarms existed. */
async function endSnoozes(tx: Sql, drafted: ReadonlyMap<number, Drafted>): Promise<void> {
  const deviceIds = [...drafted]
    .filter(
      ([
        ,
        {
          draft: { isProfileOver, before },
        },
      ]) => {
        return isProfileOver && (before.snoozes.length > 0 || before.carried !== null);
      },
    )
    .map(([deviceId]) => deviceId);
  if (deviceIds.length === 0) return;
  await tx.query(
    `with carried as (delete from alarm_upgrade where device_id = any($1::bigint[]))
     delete from alarm_snooze where device_id = any($1::bigint[])`,
    [deviceIds],
  );
}

function changedOf(
  { draft, device, ts }: Drafted,
  mayTell: DecideDeps['mayTellFirings'] = () => true,
): Changed[] {
  const snoozes = draft.isProfileOver ? [] : draft.before.snoozes;
  return alarmsOf({ draft })
    .filter(({ changes }) => changes.length > 0)
    .map(({ alarm, isNew, changes: all }) => {
      // Measurements can cause any number of these, so streams receive them only as far as the quotas allow.
      const isTold =
        !alarm.isBeyondQuota &&
        (!all.every(goesOn) || mayTell(alarm.device.accountId, countsAs(alarm, device.name)));
      const changes = isTold ? all : [];
      const snooze = snoozes.find(({ of }) => nameKey(of) === nameKey(alarm.of));
      const context = {
        deviceName: device.name,
        snoozed: quietNow(snooze, ts),
        muted: quietNow(device.mute, ts),
      };
      return { alarm, isNew, changes, context, ts };
    });
}

/** The alarm stays open: if values go up and down, such a change comes with every measurement. */
const goesOn = (change: AlarmChangeKind) => change === 'fired' || change === 'ending';

/** Drops planned messages of closed alarms, and notifies those who should hear that they are over. */
async function finishClosed(
  tx: Sql,
  drafts: readonly AlarmDraft[],
  deps: AlarmNotifier,
): Promise<void> {
  const closed = drafts.flatMap(({ alarm }): ClosedAlarm[] => {
    const { alarmId, closedBy, closedTs, announcement, movedTo } = alarm;
    if (closedBy === null || closedTs === null || announcement === 0) return [];
    return [{ alarmId, closedBy, closedTs, lastedWithState: movedTo !== null }];
  });
  if (closed.length === 0) return;
  await deps.dropPlanned(
    tx,
    closed.map(({ alarmId }) => alarmId),
  );
  await deps.notifyResolved(tx, closed);
}

/** The state of an alarm that a message about it mentions. */
type AlarmNow = {
  alarmId: number;
  acknowledgedTs: number | null;
  snoozedUntilTs: number | null;
  closedTs: number | null;
};

/** Only alarms that still exist. */
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

/** A message of this announcement reached somebody. */
export async function noteNotified(
  tx: Sql,
  alarmId: number,
  { announcement, nowTs }: { announcement: number; nowTs: WallMs },
): Promise<void> {
  const alarm = await findStanding(tx, alarmId, announcement);
  if (alarm?.told !== 'queued') return;
  const set = { told: 'told', failures: 0 } as const;
  await changeAlarms(tx, [{ alarmId, change: 'told', ts: nowTs, set }]);
}

const pausesMs = [1, 5, 15, 60].map((minutes) => minutes * 60_000);

/**
 * All messages of this announcement have failed: withdraws it, and the timer announces the alarm again, after a longer
 * pause each time.
 */
export async function takeBack(
  tx: Sql,
  alarmId: number,
  { announcement, nowTs }: { announcement: number; nowTs: WallMs },
): Promise<void> {
  const alarm = await findStanding(tx, alarmId, announcement);
  if (alarm?.told !== 'queued') return;
  const pauseMs = pausesMs[Math.min(alarm.failures, pausesMs.length - 1)] ?? 0;
  const set: Partial<Alarm> = {
    told: 'withdrawn',
    announcedTs: null,
    failures: alarm.failures + 1,
    // An acknowledged alarm is not announced again.
    nextTs: alarm.acknowledgedTs === null ? nowTs + pauseMs : null,
  };
  await changeAlarms(tx, [{ alarmId, change: 'withdrawn', ts: nowTs, set }]);
}

/** Finds the alarm if it is open and this is its current announcement. */
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
