import type { AuditKind } from '../audit/schema.ts';
import type { AlarmChangeKind } from '../contract/alarm.ts';
import type { Sql } from '../db/sql.ts';
import { actOnAlarm, actOnDevice, actWithin, personOf } from './act-on.ts';
import type { Act, ActDeps, Held, Target } from './act-on.ts';
import { nameKey, type Quiet } from './alarm.ts';
import { changeAlarms, type AlarmChange } from './change-alarms.ts';
import { hasProfile, removeMute, removeSnooze, saveMute, saveSnooze } from './quiet-queries.ts';
import { snoozed, unquieted } from './rules/person.ts';

/** Nobody is told of its event until then: of this alarm, and of later ones. Throws `not-found`. */
export function snoozeAlarm(
  deps: ActDeps,
  act: Act,
  alarmId: number,
  quiet: Pick<Quiet, 'untilTs' | 'reason'>,
): Promise<void> {
  return actOnAlarm(deps, act, alarmId, async (held, { of, pId, open }) => {
    const { tx, ts, deviceId } = held;
    // Of another profile's event there are no later alarms.
    if (!open && !(await hasProfile(tx, deviceId, pId))) return null;
    await saveSnooze(tx, deviceId, { ...quiet, of, pId, by: personOf(act.by), ts });
    const set = open && snoozed(open, quiet);
    if (open && set) {
      await changeAlarms(held.tx, [{ alarmId: open.alarmId, change: 'snoozed', ts, set }]);
      await deps.telling.dropPlanned(tx, [open.alarmId]);
    }
    return 'alarm-snoozed';
  });
}

/** Its event may be told of again: what is open and was not told is told at once. Throws `not-found`. */
export function unsnoozeAlarm(deps: ActDeps, act: Act, alarmId: number): Promise<void> {
  return actOnAlarm(deps, act, alarmId, async (held, { of, open }) => {
    const { tx, ts, deviceId, device } = held;
    const snooze = device?.snoozes.find((one) => nameKey(one.of) === nameKey(of));
    if (!snooze) return null;
    await removeSnooze(tx, deviceId, of);
    const set = open && unquieted(open, ts, snooze.untilTs);
    if (open)
      await changeAlarms(held.tx, [
        { alarmId: open.alarmId, change: 'unsnoozed', ts, set: set ?? {} },
      ]);
    return 'alarm-unsnoozed';
  });
}

/** Nobody is told of any event of the device until then. */
export function muteDevice(
  deps: ActDeps,
  target: Target,
  quiet: Pick<Quiet, 'untilTs' | 'reason'>,
): Promise<void> {
  return actOnDevice(deps, target, (held) => mute(deps, held, quiet));
}

/** People are told of the device's events again: of what is open and was not told at once. */
export function unmuteDevice(deps: ActDeps, target: Target): Promise<void> {
  return actOnDevice(deps, target, unmute);
}

/** The same of both within the caller's transaction: until then, or (null) not any more. Streams are not told. */
export function quietenWithin(
  tx: Sql,
  deps: ActDeps,
  target: Target,
  quiet: Pick<Quiet, 'untilTs' | 'reason'> | null,
): Promise<void> {
  return actWithin(tx, target, (held) => (quiet ? mute(deps, held, quiet) : unmute(held)));
}

async function mute(
  { telling }: ActDeps,
  held: Held,
  quiet: Pick<Quiet, 'untilTs' | 'reason'>,
): Promise<AuditKind> {
  const { tx, ts, deviceId, device, by } = held;
  const ended = device?.mute && device.mute.untilTs > quiet.untilTs ? device.mute : null;
  await saveMute(tx, deviceId, { ...quiet, by: personOf(by), ts });
  await telling.putOffPlanned(tx, deviceId, quiet.untilTs);
  if (ended) await wake(held, ended.untilTs, quiet.untilTs);
  return 'device-muted';
}

async function unmute(held: Held): Promise<AuditKind | null> {
  const before = held.device?.mute;
  if (!before) return null;
  await removeMute(held.tx, held.deviceId);
  await wake(held, before.untilTs, held.ts);
  return 'device-unmuted';
}

/** The timer of what a mute put off looks at `nextTs` instead of the mute's end. */
async function wake(held: Held, quietUntilTs: number, nextTs: number): Promise<void> {
  const changes = (held.device?.open ?? []).flatMap((alarm): AlarmChange[] => {
    const set = unquieted(alarm, nextTs, quietUntilTs);
    const change: AlarmChangeKind = 'unsnoozed';
    return set ? [{ alarmId: alarm.alarmId, change, ts: held.ts, set }] : [];
  });
  await changeAlarms(held.tx, changes);
}
