import type { Sql } from '../db/sql.ts';
import { nameKey, quietNow } from './alarm.ts';
import type { LoadedDevice } from './load.ts';
import type { ClosedAlarm, DecideDeps, Opened, Telling } from './ports.ts';
import type { DeviceDraft, AlarmDraft } from './rules/draft.ts';
import { reserveIds, saveAlarms, type Changed } from './store.ts';

/** Devices by number, as the rules left them, as they were read, and when the last thing happened (ms). */
export type Drafted = {
  draft: DeviceDraft;
  device: LoadedDevice;
  ts: number;
};

const alarmsOf = ({ draft }: Drafted): AlarmDraft[] => [...draft.closed, ...draft.open.values()];

/** Writes what the rules made of devices, and what follows where an alarm closed. */
export async function saveDrafts(
  tx: Sql,
  drafted: ReadonlyMap<number, Drafted>,
  telling: Telling,
): Promise<void> {
  const all = [...drafted.values()];
  await endSnoozes(tx, drafted);
  await saveAlarms(tx, all.flatMap(changedOf));
  await finishClosed(tx, all.flatMap(alarmsOf), telling);
}

/** Numbers what was opened; gives how many alarms of each account its quota has room for. */
export async function giveIds(
  tx: Sql,
  drafted: ReadonlyMap<number, Drafted>,
  deps: Pick<DecideDeps, 'eventsLeft'>,
): Promise<Opened> {
  const opened = [...drafted.values()].flatMap(alarmsOf).filter(({ isNew }) => isNew);
  const ids = await reserveIds(tx, opened.length);
  const counts = new Map<number, number>();
  for (const [place, { alarm }] of opened.entries()) {
    const { accountId } = alarm.device;
    const before = counts.get(accountId) ?? 0;
    alarm.alarmId = ids[place] ?? 0;
    alarm.isBeyondQuota = deps.eventsLeft(accountId) <= before;
    if (!alarm.isBeyondQuota) counts.set(accountId, before + 1);
  }
  return counts;
}

/** Snoozes are of events of one profile, and so is what was told before there were alarms. */
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

function changedOf(drafted: Drafted): Changed[] {
  const { draft, device, ts } = drafted;
  const snoozes = draft.isProfileOver ? [] : draft.before.snoozes;
  return alarmsOf(drafted)
    .filter(({ changes }) => changes.length > 0)
    .map(({ alarm, isNew, changes: all }) => {
      // Measurements can bring any number of these: streams are told as far as the quota goes.
      const changes = alarm.isBeyondQuota ? [] : all;
      const snooze = snoozes.find(({ of }) => nameKey(of) === nameKey(alarm.of));
      const around = {
        deviceName: device.name,
        snoozed: quietNow(snooze, ts),
        muted: quietNow(device.mute, ts),
      };
      return { alarm, isNew, changes, around, ts };
    });
}

/** What was planned of those that closed is dropped, and who is to hear that they are over is told. */
async function finishClosed(tx: Sql, drafts: readonly AlarmDraft[], deps: Telling): Promise<void> {
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
  await deps.tellOver(tx, closed);
}
