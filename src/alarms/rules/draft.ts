import type { AlarmChangeKind } from '../../contract/alarm.ts';
import type { AlarmSignal, FiredSignal } from '../../contract/alarm-signal.ts';
import type { EventName, SenseEvent } from '../../contract/event.ts';
import type { NotNotified } from '../../contract/not-notified.ts';
import type { Announced } from '../../contract/notification.ts';
import type { DeviceIdentity } from '../../contract/uplink.ts';
import { nameKey, type Alarm, type Quiet, type Snooze } from '../alarm.ts';

export type RuleOptions = {
  /** Beyond that age a measurement is too old to tell people of; also how often the timer looks. */
  ringMaxAgeMs: number;
  /** How long an alarm of a reported event stays open after the newest report. */
  reportedForMs: number;
};

/** An alarm while it is decided on. */
export type AlarmDraft = {
  alarm: Alarm;
  isNew: boolean;
  changes: AlarmChangeKind[];
  /** The ask of this transaction that tells of it, by its place; its answer is not known yet. */
  ask: number | null;
};

/** What people are to be told; `draft` is null of a notice. */
export type PlannedAsk = {
  draft: AlarmDraft | null;
  type: Announced['type'];
  device: DeviceIdentity;
  event: SenseEvent;
  actions: FiredSignal['actions'];
  name: string;
};

/** What an event says of who was told: known already, or once an ask is answered. */
export type TellingVerdict = {
  event: SenseEvent;
  /** Null: what became of `ask` says so. */
  because: NotNotified | null;
  ask: number | null;
  /** The ask is this firing's own: others that share it are `same-episode`. */
  isAsking: boolean;
};

/** What is known of a device before its signals are read. */
export type DeviceBefore = {
  open: Alarm[];
  snoozes: Snooze[];
  mute: Quiet | null;
  /** Where episodes may have been told of before there were alarms: the events that had an alarm since. */
  carried: { known: ReadonlySet<string> } | null;
};

/** A device while its signals are read. */
export type DeviceDraft = {
  before: DeviceBefore;
  open: Map<string, AlarmDraft>;
  closed: AlarmDraft[];
  asks: PlannedAsk[];
  verdicts: TellingVerdict[];
  /** The snoozes of the profile that ended are gone. */
  isProfileOver: boolean;
  options: RuleOptions;
  /** When people are told, ms: what arrived, or was due, may be hours older. */
  nowTs: number;
};

export type FiredAlarm = AlarmSignal & FiredSignal;

export function beginDraft(
  before: DeviceBefore,
  { options, nowTs, asks }: Pick<DeviceDraft, 'options' | 'nowTs' | 'asks'>,
): DeviceDraft {
  const drafts = before.open.map((alarm): [string, AlarmDraft] => [
    nameKey(alarm.of),
    { alarm: { ...alarm }, isNew: false, changes: [], ask: null },
  ]);
  return {
    before,
    open: new Map(drafts),
    closed: [],
    asks,
    verdicts: [],
    isProfileOver: false,
    options,
    nowTs,
  };
}

/** Notes a change, once in a transaction. */
export function note({ changes }: AlarmDraft, kind: AlarmChangeKind): void {
  if (!changes.includes(kind)) changes.push(kind);
}

/** Until when nobody is told of the event; null: people are. A notice knows mutes only. */
export function quietUntil(
  { before, isProfileOver, nowTs }: DeviceDraft,
  of: EventName | null,
): number | null {
  const snoozes = isProfileOver || !of ? [] : before.snoozes.filter((one) => isOf(one, of));
  const quiet = [before.mute, ...snoozes].filter((one) => one !== null && one.untilTs > nowTs);
  return quiet.length === 0 ? null : Math.max(...quiet.map((one) => one?.untilTs ?? 0));
}

const isOf = (snooze: Snooze, of: EventName) => nameKey(snooze.of) === nameKey(of);
