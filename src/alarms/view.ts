import { AlarmChangeKind, type AlarmState, type AlarmView } from '../contract/alarm.ts';
import type { Alarm, Quiet } from './alarm.ts';

/** What is said of an alarm that its row does not have. */
export type AroundAlarm = {
  deviceName: string;
  snoozed: Quiet | null;
  muted: Quiet | null;
  /** Instead of those of its newest firing. */
  values?: AlarmView['values'];
};

/** An alarm as clients see it. */
export function toAlarmView(alarm: Alarm, around: AroundAlarm): AlarmView {
  const { device, of, event } = alarm;
  const { alarmId, pId, purposeName, stateName, eventName, sinceTs, lastFiringTs, firings } = alarm;
  const { told, notNotified, announcedTs, acknowledgedTs, acknowledgedBy } = alarm;
  return {
    alarmId,
    deviceAuthUuid: device.uuid,
    deviceName: around.deviceName,
    pId,
    puId: of.puId,
    purposeName,
    stId: of.stId,
    stateName,
    evId: of.evId,
    eventName,
    state: stateOf(alarm),
    sinceTs,
    lastFiringTs,
    firings,
    values: around.values ?? event.cause.senses,
    told,
    notNotified,
    announcedTs,
    acknowledgedTs,
    acknowledgedBy,
    snoozed: around.snoozed,
    muted: around.muted,
    endsTs: alarm.endsTs,
    closedTs: alarm.closedTs,
    closedBy: alarm.closedBy,
  };
}

function stateOf({ closedTs, acknowledgedTs }: Alarm): AlarmState {
  if (closedTs !== null) return 'closed';
  return acknowledgedTs === null ? 'open' : 'acknowledged';
}

/** The one of several changes that a stream names: the enumeration has them in this order. */
export function foremost(changes: readonly AlarmChangeKind[]): AlarmChangeKind {
  return AlarmChangeKind.options.find((kind) => changes.includes(kind)) ?? 'fired';
}
