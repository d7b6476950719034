import { actOnAlarm, personOf, type Act, type ActDeps } from './act-on.ts';
import { nameKey, type Quiet } from './alarm.ts';
import { changeAlarms } from './change-alarms.ts';
import { hasProfile, removeSnooze, saveSnooze } from './quiet-queries.ts';
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
