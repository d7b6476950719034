import type { AlarmChangeKind } from '../contract/alarm.ts';
import type { Sql } from '../db/sql.ts';
import { nameKey, quietNow } from './alarm.ts';
import type { LoadedDevice } from './load.ts';
import type { ClosedAlarm, DecideDeps, Opened, Telling } from './ports.ts';
import type { DeviceDraft, AlarmDraft } from './rules/draft.ts';
import { countsAs } from './counts-as.ts';
import { reserveIds, saveAlarms, type Changed } from './store.ts';

/** Devices by number, as the rules left them, as they were read, and when the last thing happened (ms). */
export type Drafted = {
  draft: DeviceDraft;
  device: LoadedDevice;
  ts: number;
};

const alarmsOf = ({ draft }: Pick<Drafted, 'draft'>): AlarmDraft[] => [
  ...draft.closed,
  ...draft.open.values(),
];

/** Writes what the rules made of devices, and what follows where an alarm closed. */
export async function saveDrafts(
  tx: Sql,
  drafted: ReadonlyMap<number, Drafted>,
  deps: Telling & Partial<Pick<DecideDeps, 'mayTellFirings'>>,
): Promise<void> {
  const all = [...drafted.values()];
  await endSnoozes(tx, drafted);
  await saveAlarms(
    tx,
    all.flatMap((each) => changedOf(each, deps.mayTellFirings)),
  );
  await finishClosed(tx, all.flatMap(alarmsOf), deps);
}

/** Numbers what was opened; gives how many events the alarms of each account count as that its quota has room for. */
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

function changedOf(
  { draft, device, ts }: Drafted,
  mayTell: DecideDeps['mayTellFirings'] = () => true,
): Changed[] {
  const snoozes = draft.isProfileOver ? [] : draft.before.snoozes;
  return alarmsOf({ draft })
    .filter(({ changes }) => changes.length > 0)
    .map(({ alarm, isNew, changes: all }) => {
      // Measurements can bring any number of these: streams are told as far as the quotas go.
      const isTold =
        !alarm.isBeyondQuota &&
        (!all.every(goesOn) || mayTell(alarm.device.accountId, countsAs(alarm, device.name)));
      const changes = isTold ? all : [];
      const snooze = snoozes.find(({ of }) => nameKey(of) === nameKey(alarm.of));
      const around = {
        deviceName: device.name,
        snoozed: quietNow(snooze, ts),
        muted: quietNow(device.mute, ts),
      };
      return { alarm, isNew, changes, around, ts };
    });
}

/** The alarm stays open: with values that go up and down this changes as often as it is measured. */
const goesOn = (change: AlarmChangeKind) => change === 'fired' || change === 'ending';

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
