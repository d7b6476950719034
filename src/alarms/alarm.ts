import type { Actions } from '../contract/actions.ts';
import type { AlarmTold, Closing } from '../contract/alarm.ts';
import type { FiredSignal } from '../contract/alarm-signal.ts';
import type { EventName, SenseEvent } from '../contract/event.ts';
import type { NotNotified } from '../contract/not-notified.ts';
import type { Place } from '../contract/place.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';

/**
 * An alarm as its row has it. Times in ms; by the service's clock but for `sinceTs` and `lastFiringTs`, which
 * are those of events. What each is for stands with the columns (migration 17).
 */
export type Alarm = {
  alarmId: number;
  device: DeviceIdentity;
  pId: string;
  of: EventName;
  purposeName: string;
  stateName: string;
  eventName: string;
  tells: 'alarm' | 'silent-alarm';
  isReported: boolean;
  isGlobal: boolean;
  sinceTs: number;
  lastFiringTs: number;
  firings: number;
  event: SenseEvent;
  actions: Actions;
  sIds: string[];
  movedTo: Place | null;
  endsTs: number | null;
  endsAs: Closing | null;
  expiresTs: number | null;
  told: AlarmTold;
  notNotified: NotNotified | null;
  announcedTs: number | null;
  announcement: number;
  failures: number;
  nextTs: number | null;
  repeatMs: number | null;
  waitsForFresh: boolean;
  lookedTs: number | null;
  acknowledgedTs: number | null;
  acknowledgedBy: string | null;
  closedTs: number | null;
  closedBy: Closing | null;
  isBeyondQuota: boolean;
};

/** Nobody is told of an event, or of a device, until then. */
export type Quiet = { untilTs: number; reason: string | null; by: string };
export type Snooze = Quiet & { of: EventName; pId: string };

/** What of it clients are told at that time (ms); null where it is over. */
export function quietNow(quiet: Quiet | null | undefined, nowTs: number): Quiet | null {
  if (!quiet || quiet.untilTs <= nowTs) return null;
  const { untilTs, reason, by } = quiet;
  return { untilTs, reason, by };
}

/** As text, to find an event by. */
export const nameKey = ({ puId, stId, evId }: EventName): string => `${puId}/${stId}/${evId}`;

/** The alarm that a firing opens; `alarmId` is given by who stores it. */
export function openedBy(signal: FiredSignal & { device: DeviceIdentity }): Alarm {
  const { device, pId, of, event, actions, isGlobal, sIds } = signal;
  return {
    alarmId: 0,
    device,
    pId,
    of,
    purposeName: signal.purposeName,
    stateName: signal.stateName,
    eventName: signal.name,
    tells: signal.tells === 'silent-alarm' ? 'silent-alarm' : 'alarm',
    isReported: signal.reportKey !== undefined,
    isGlobal,
    sinceTs: event.ts,
    lastFiringTs: event.ts,
    firings: 0,
    event,
    actions,
    sIds,
    movedTo: null,
    endsTs: null,
    endsAs: null,
    expiresTs: null,
    told: 'none',
    notNotified: null,
    announcedTs: null,
    announcement: 0,
    failures: 0,
    nextTs: null,
    repeatMs: actions.repeatMs ?? null,
    waitsForFresh: false,
    lookedTs: null,
    acknowledgedTs: null,
    acknowledgedBy: null,
    closedTs: null,
    closedBy: null,
    isBeyondQuota: false,
  };
}
