import { actOnAlarm, personOf, type Act, type ActDeps } from './act-on.ts';
import { changeAlarms } from './change-alarms.ts';
import { closedAs } from './rules/close.ts';
import { acknowledgedAlarm } from './rules/person.ts';

/** Nobody is told of it again. What is closed, or acknowledged already, stays as it is. Throws `not-found`. */
export function acknowledgeAlarm(deps: ActDeps, act: Act, alarmId: number): Promise<void> {
  return actOnAlarm(deps, act, alarmId, async (held, { own }) => {
    const set = own && acknowledgedAlarm(own, personOf(act.by), held.ts);
    if (!own || !set) return null;
    await changeAlarms(held.tx, [{ alarmId, change: 'acknowledged', ts: held.ts, set }]);
    await deps.telling.dropPlanned(held.tx, [alarmId]);
    return 'alarm-acknowledged';
  });
}

/** Closes it, and with it the episode: the next firing opens another one. Throws `not-found`. */
export function closeAlarm(deps: ActDeps, act: Act, alarmId: number): Promise<void> {
  return actOnAlarm(deps, act, alarmId, async (held, { own }) => {
    if (!own) return null;
    const { tx, ts } = held;
    const set = closedAs('person', ts);
    await changeAlarms(held.tx, [{ alarmId, change: 'closed', ts, set }]);
    await deps.telling.dropPlanned(tx, [alarmId]);
    if (own.announcement > 0)
      await deps.telling.tellOver(tx, [
        { alarmId, closedBy: 'person', closedTs: ts, lastedWithState: own.movedTo !== null },
      ]);
    return 'alarm-closed';
  });
}
