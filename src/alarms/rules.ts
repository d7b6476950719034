import {
  type Actions,
  type Announced,
  asksForMove,
  type NotifyResult,
} from '../contract/actions.ts';
import type {
  AlarmChangeKind,
  AlarmCondition,
  AlarmSignal,
  AlarmTold,
  AlarmValue,
  AtMeasurement,
  Closing,
  FiredSignal,
} from '../contract/alarm.ts';
import type { EventName, NotNotified, SenseEvent } from '../contract/event.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';
import { isSamePlace, type Place } from '../contract/values.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Applies one signal to a device. Call it in the order in which the signals happened. */
export function decide(device: DeviceDraft, signal: AlarmSignal): void {
  const { arrivedTs } = signal;
  closeDue(device, arrivedTs);
  const open = () => [...device.open.values()];
  switch (signal.kind) {
    case 'fired':
      fireAlarm(device, signal);
      return;
    case 'ended':
      for (const of of signal.of) {
        const draft = device.open.get(nameKey(of));
        if (draft && lastsByEpisode(draft.alarm)) end(device, draft, 'cleared', signal);
        forget(device, (alarm) => nameKey(alarm.of) === nameKey(of) && lastsByEpisode(alarm));
      }
      return;
    case 'moved':
      if (isSamePlace(signal.from, signal.to)) return;
      for (const draft of open())
        if (endsByMove(draft.alarm, signal.to, signal.isReport))
          end(device, draft, 'left-state', signal);
      forget(device, (alarm) => endsByMove(alarm, signal.to, signal.isReport));
      return;
    case 'heard':
      announceOnFresh(device, signal);
      return;
    // It changes what is said of closed alarms, and opens or closes none.
    case 'late':
      return;
    case 'profile':
      for (const draft of open()) close(device, draft, 'profile', arrivedTs);
      device.isProfileOver = true;
      forget(device, () => true);
      return;
    case 'configuration': {
      const left = new Set(signal.sIds);
      for (const draft of open())
        if (draft.alarm.sIds.some((sId) => !left.has(sId)))
          close(device, draft, 'configuration', arrivedTs);
      forget(device, ({ sIds }) => sIds.some((sId) => !left.has(sId)));
    }
  }
}

const lastsByEpisode = ({ movedTo, isReported }: Alarm) => movedTo === null && !isReported;

/** What a person closed although it held does not hold any more, or another alarm takes its place. */
function forget({ lasting }: DeviceDraft, isOver: (alarm: Alarm) => boolean): void {
  for (const draft of lasting.values())
    if (isOver(draft.alarm)) {
      draft.alarm.againTs = null;
      draft.isTouched = true;
      lasting.delete(nameKey(draft.alarm.of));
    }
}

/** An alarm that began too long ago to be announced is announced by the next fresh measurement that leaves it open. */
function announceOnFresh(device: DeviceDraft, { sIds }: AlarmSignal & { kind: 'heard' }): void {
  for (const draft of device.open.values()) {
    const { alarm } = draft;
    const waits = alarm.waitsForFresh && alarm.announcedTs === null && draft.ask === null;
    if (!waits || alarm.endsTs !== null || !alarm.sIds.some((sId) => sIds.includes(sId))) continue;
    if (reasonNotToNotify(device, alarm, true) !== null) continue;
    const { event, actions, eventName: name } = alarm;
    askPeople(device, draft, { device: alarm.device, event, actions, name, isFiring: false });
  }
}

function close(device: DeviceDraft, draft: AlarmDraft, closedBy: Closing, closedTs: number): void {
  Object.assign(draft.alarm, closedAs(closedBy, closedTs));
  note(draft, 'closed');
  device.open.delete(nameKey(draft.alarm.of));
  device.closed.push(draft);
}

/** The changes to an alarm that closes. */
function closedAs(closedBy: Closing, closedTs: number): Partial<Alarm> {
  const nothingLeft = { endsTs: null, endsAs: null, expiresTs: null, nextTs: null };
  return { ...nothingLeft, closedBy, closedTs, waitsForFresh: false };
}

/**
 * A measurement or report has ended the alarm's condition: it closes, or `actions.keepMs` keeps it open for a while. A
 * value that was measured before the alarm began, and arrived late, ends it when it began.
 */
function end(
  device: DeviceDraft,
  draft: AlarmDraft,
  as: Closing,
  { ts, arrivedTs: nowTs }: { ts: number; arrivedTs: WallMs },
): void {
  const { alarm } = draft;
  if (alarm.endsTs !== null) return;
  alarm.overTs = Math.max(ts, alarm.beganTs ?? ts);
  alarm.overArrivedTs = nowTs;
  if (alarm.conditions.length === 1 && fills(silenceOf(alarm), ts)) alarm.filledTs = ts;
  const { keepMs = 0 } = alarm.actions;
  if (keepMs === 0) {
    close(device, draft, as, nowTs);
    return;
  }
  alarm.endsTs = nowTs + keepMs;
  alarm.endsAs = as;
  note(draft, 'ending');
}

/**
 * A silence for which an alarm opened: measurements of its sense between these times, ms (exclusive), show that there
 * was none. They begin with the last one that was heard, and last as long as the sense may be silent, by the device's
 * clock.
 */
export type Silence = { sId: string; afterTs: number; beforeTs: number };

/** The first silence among the causes of an alarm; null if there is none, or its sense was never heard. */
export function silenceOf({
  conditions,
  firedWith,
}: Pick<Alarm, 'conditions' | 'firedWith'>): Silence | null {
  for (const { sId, threshold } of conditions) {
    const { noneForMs } = threshold;
    const last = firedWith.find((value) => value.sId === sId);
    if (typeof noneForMs === 'number' && last)
      return { sId, afterTs: last.ts, beforeTs: last.ts + noneForMs };
  }
  return null;
}

const fills = (silence: Silence | null, ts: number) =>
  silence !== null && ts > silence.afterTs && ts < silence.beforeTs;

/** When an alarm closes by itself, and as what; null if it does not. */
function dueClosing({ endsTs, endsAs, expiresTs }: Alarm): { ts: number; as: Closing } | null {
  const ends = endsTs !== null && endsAs !== null ? { ts: endsTs, as: endsAs } : null;
  if (expiresTs === null || (ends && ends.ts <= expiresTs)) return ends;
  return { ts: expiresTs, as: 'expired' };
}

/** Closes alarms that were due to close by this time. */
export function closeDue(device: DeviceDraft, nowTs: WallMs): void {
  for (const draft of device.open.values()) {
    const due = dueClosing(draft.alarm);
    if (due && due.ts <= nowTs) close(device, draft, due.as, due.ts);
  }
}

/**
 * Whether a change of state ends an alarm. The alarm of a reported event ends only by a report of a state that the
 * event does not lead to. An alarm whose event changed the state lasts as long as the state that it led to. Any other
 * lasts as long as the state of its event, or the purpose if that state is global.
 */
function endsByMove(alarm: Alarm, to: Place, isReport: boolean): boolean {
  const { of, movedTo, isReported, isGlobal } = alarm;
  if (isReported) return isReport && !isSamePlace(movedTo, to);
  if (movedTo) return !isSamePlace(movedTo, to);
  return of.puId !== to.puId || (!isGlobal && of.stId !== to.stId);
}

export type RuleOptions = {
  /** A measurement older than this is too old to notify people of; also how often the timer looks. */
  ringMaxAgeMs: number;
  /** How long an alarm of a reported event stays open after the newest report. */
  reportedForMs: number;
};

/** An alarm while the rules decide on it. */
export type AlarmDraft = {
  alarm: Alarm;
  isNew: boolean;
  changes: AlarmChangeKind[];
  /** Index of the ask in this transaction that announces it; the result is not known yet. */
  ask: number | null;
  /** It has to be written although streams receive no change. */
  isTouched?: true;
};

/** A notification to request; `draft` is null for a notice. */
export type PlannedAsk = {
  draft: AlarmDraft | null;
  type: Announced['type'];
  device: DeviceIdentity;
  event: SenseEvent;
  actions: FiredSignal['actions'];
  name: string;
};

/** What an event records about its notification: known already, or once the ask has a result. */
type NotifyVerdict = {
  event: SenseEvent;
  /** Null if the result of `ask` decides. */
  because: NotNotified | null;
  ask: number | null;
  /** The ask belongs to this firing; other firings that share it become `same-episode`. */
  isAsking: boolean;
};

/** What is known of a device before its signals are read. */
export type DeviceBefore = {
  open: Alarm[];
  /** Those that a person closed although they held, and that held since (`againTs`). */
  lasting: Alarm[];
  snoozes: Snooze[];
  mute: Quiet | null;
  /** Set if episodes may have been announced before alarms existed: the events that have had an alarm since. */
  carried: { known: ReadonlySet<string> } | null;
};

/** A device while its signals are read. */
export type DeviceDraft = {
  before: DeviceBefore;
  open: Map<string, AlarmDraft>;
  /** `lasting` of `before`: those left, and all of them. */
  lasting: Map<string, AlarmDraft>;
  wereLasting: AlarmDraft[];
  closed: AlarmDraft[];
  asks: PlannedAsk[];
  verdicts: NotifyVerdict[];
  /** The profile has ended, and with it its snoozes. */
  isProfileOver: boolean;
  options: RuleOptions;
  /** The time of the decision, ms; what arrived, or was due, may be hours older. */
  nowTs: WallMs;
};

type FiredAlarm = AlarmSignal & FiredSignal;

export function beginDraft(
  before: DeviceBefore,
  { options, nowTs, asks }: Pick<DeviceDraft, 'options' | 'nowTs' | 'asks'>,
): DeviceDraft {
  const draftsOf = (alarms: Alarm[]) =>
    alarms.map((alarm): [string, AlarmDraft] => [
      nameKey(alarm.of),
      { alarm: { ...alarm }, isNew: false, changes: [], ask: null },
    ]);
  const lasting = draftsOf(before.lasting);
  return {
    before,
    open: new Map(draftsOf(before.open)),
    lasting: new Map(lasting),
    wereLasting: lasting.map(([, draft]) => draft),
    closed: [],
    asks,
    verdicts: [],
    isProfileOver: false,
    options,
    nowTs,
  };
}

/** Records a change, at most once in a transaction. */
function note({ changes }: AlarmDraft, kind: AlarmChangeKind): void {
  if (!changes.includes(kind)) changes.push(kind);
}

/** Until when notifications of the event are suppressed; null if they are not. Only mutes apply to a notice. */
export function quietUntil(
  { before, isProfileOver, nowTs }: DeviceDraft,
  of: EventName | null,
): number | null {
  const snoozes = isProfileOver || !of ? [] : before.snoozes.filter((one) => isOf(one, of));
  const quiet = [before.mute, ...snoozes].filter((one) => one !== null && one.untilTs > nowTs);
  return quiet.length === 0 ? null : Math.max(...quiet.map((one) => one?.untilTs ?? 0));
}

const isOf = (snooze: Snooze, of: EventName) => nameKey(snooze.of) === nameKey(of);

/**
 * An alarm as its row has it. Times are in ms by the service's clock, except `sinceTs` and `lastFiringTs`, which are
 * timestamps of events, and `beganTs` and `overTs`, which are those of measurements. The columns say what each is for
 * (`src/db/schema/10-alarms.sql`).
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
  beganTs: number | null;
  beganArrivedTs: number | null;
  overTs: number | null;
  overArrivedTs: number | null;
  filledTs: number | null;
  event: SenseEvent;
  actions: Actions;
  sIds: string[];
  /** What its causes required when it opened, and the values then; empty if an earlier version opened it. */
  conditions: AlarmCondition[];
  firedWith: AlarmValue[];
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
  /** A person closed it while its condition held: when another alarm opens if it still does. */
  againTs: number | null;
  closedWith: ClosedWith | null;
};

/** What the end of an alarm clears, and opening it again restores. */
type Cleared = Pick<Alarm, 'endsTs' | 'endsAs' | 'expiresTs' | 'nextTs' | 'waitsForFresh'>;

/** `jobId`: of the job that closed it; absent if a person closed this one alarm. */
type ClosedWith = Cleared & { jobId?: string };

const clearedOf = ({ endsTs, endsAs, expiresTs, nextTs, waitsForFresh }: Cleared): Cleared => ({
  endsTs,
  endsAs,
  expiresTs,
  nextTs,
  waitsForFresh,
});

/** A snooze or a mute: suppresses notifications of an event, or of a device, until then. */
export type Quiet = { untilTs: number; reason: string | null; by: string };
export type Snooze = Quiet & { of: EventName; pId: string };

/** What clients see of it at that time (ms); null if it is over. */
export function quietNow(quiet: Quiet | null | undefined, nowTs: WallMs): Quiet | null {
  if (!quiet || quiet.untilTs <= nowTs) return null;
  const { untilTs, reason, by } = quiet;
  return { untilTs, reason, by };
}

/** An event's identifiers as one string, for maps. */
export const nameKey = ({ puId, stId, evId }: EventName): string => `${puId}/${stId}/${evId}`;

/** Nobody has been notified of it yet. */
const unannounced = {
  told: 'none',
  notNotified: null,
  announcedTs: null,
  announcement: 0,
  failures: 0,
} satisfies Partial<Alarm>;

/** The alarm that a firing opens; storing it assigns the `alarmId`. */
function openedBy(
  signal: FiredSignal & { device: DeviceIdentity },
  began: AtMeasurement | null,
): Alarm {
  const { device, pId, of, event, actions, isGlobal, sIds, conditions } = signal;
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
    beganTs: began?.ts ?? null,
    beganArrivedTs: began?.arrivedTs ?? null,
    overTs: null,
    overArrivedTs: null,
    filledTs: null,
    event,
    actions,
    sIds,
    conditions,
    firedWith: event.cause.senses,
    movedTo: null,
    endsTs: null,
    endsAs: null,
    expiresTs: null,
    ...unannounced,
    nextTs: null,
    repeatMs: actions.repeatMs ?? null,
    waitsForFresh: false,
    lookedTs: null,
    acknowledgedTs: null,
    acknowledgedBy: null,
    closedTs: null,
    closedBy: null,
    isBeyondQuota: false,
    againTs: null,
    closedWith: null,
  };
}

/** An event fired: a notice is sent, or an alarm opens or goes on. A report that is too old does neither. */
function fireAlarm(device: DeviceDraft, fired: FiredAlarm): void {
  if (fired.tells === 'notice') {
    fireNotice(device, fired);
    return;
  }
  if (fired.reportKey !== undefined && !fired.isFresh) {
    if (fired.tells === 'alarm') refuse(device, fired.event, 'too-old');
    return;
  }
  const kept = device.open.get(nameKey(fired.of));
  if (kept && wasOver(kept.alarm, fired))
    close(device, kept, kept.alarm.endsAs ?? 'cleared', fired.arrivedTs);
  const draft = device.open.get(nameKey(fired.of)) ?? open(device, fired);
  goOn(device, draft, fired);
  if (fired.tells === 'alarm') tellFiring(device, draft, fired);
}

/**
 * Whether the alarm had been over for longer than it is kept open when what fires now began, by their measurements. In
 * a backlog they arrive within moments of each other.
 */
function wasOver({ endsTs, overTs, actions }: Alarm, { began, event }: FiredAlarm): boolean {
  if (endsTs === null || overTs === null) return false;
  return (began?.ts ?? event.ts) > overTs + (actions.keepMs ?? 0);
}

function fireNotice(device: DeviceDraft, fired: FiredAlarm): void {
  const why = whyNoNotice(device, fired);
  if (why) refuse(device, fired.event, why);
  else askPeople(device, null, fired);
}

function whyNoNotice(device: DeviceDraft, fired: FiredAlarm): NotNotified | null {
  if (asksForMove(fired.actions) && isSamePlace(fired.movedTo, fired.from)) return 'same-episode';
  if (!fired.isFresh) return 'too-old';
  return quietUntil(device, null) === null ? null : 'snoozed';
}

function open(device: DeviceDraft, fired: FiredAlarm): AlarmDraft {
  const { carried } = device.before;
  // An episode that began before alarms existed was announced then, and when it began is not known.
  const isCarried =
    carried !== null &&
    !device.isProfileOver &&
    !carried.known.has(nameKey(fired.of)) &&
    !fired.isFirst;
  const alarm = openedBy(fired, isCarried ? null : fired.began);
  const draft: AlarmDraft = { alarm, isNew: true, changes: [], ask: null };
  note(draft, 'opened');
  if (isCarried && fired.tells === 'alarm')
    Object.assign(draft.alarm, { told: 'told', announcedTs: device.nowTs, announcement: 1 });
  device.open.set(nameKey(fired.of), draft);
  forget(device, ({ of }) => nameKey(of) === nameKey(fired.of));
  return draft;
}

/** The firing becomes the alarm's newest and cancels its end. */
function goOn({ options, nowTs }: DeviceDraft, draft: AlarmDraft, fired: FiredAlarm): void {
  const { alarm } = draft;
  const { event, actions, arrivedTs } = fired;
  Object.assign(alarm, { event, actions, lastFiringTs: event.ts, firings: alarm.firings + 1 });
  alarm.movedTo = lastsWith(alarm, fired);
  // Its timer was postponed to that end.
  if (alarm.endsTs !== null && alarm.nextTs === alarm.endsTs) alarm.nextTs = nowTs;
  alarm.endsTs = alarm.endsAs = alarm.overTs = alarm.overArrivedTs = null;
  alarm.expiresTs = alarm.isReported ? arrivedTs + options.reportedForMs : null;
  note(draft, 'fired');
}

/** The state that the alarm lasts as long as: one other than before, or the one that it has already, entered again. */
function lastsWith(alarm: Alarm, { from, movedTo, reportKey }: FiredAlarm): Place | null {
  if (reportKey !== undefined) return movedTo;
  const isAnother = movedTo !== null && !isSamePlace(movedTo, from);
  return isAnother || isSamePlace(movedTo, alarm.movedTo) ? movedTo : null;
}

/** Announces this firing, or records why nobody is notified. */
function tellFiring(device: DeviceDraft, draft: AlarmDraft, fired: FiredAlarm): void {
  const { alarm } = draft;
  const { event, isFresh } = fired;
  if (draft.ask !== null) {
    // That ask announces this firing too, or both fail.
    device.verdicts.push({
      event,
      because: isFresh ? null : 'too-old',
      ask: draft.ask,
      isAsking: false,
    });
    return;
  }
  if (alarm.announcedTs !== null || isInPause(alarm, device.nowTs)) {
    refuse(device, event, 'same-episode');
    return;
  }
  const why = reasonNotToNotify(device, alarm, isFresh);
  if (!why) {
    askPeople(device, draft, fired);
    return;
  }
  refuse(device, event, why);
  alarm.notNotified = why;
  if (why === 'too-old') waitForFresh(device, alarm, fired);
  else if (why === 'snoozed') alarm.nextTs = quietUntil(device, alarm.of);
}

/** Why an alarm that is not announced must not be announced now; null: it depends on the channels. */
function reasonNotToNotify(
  device: DeviceDraft,
  alarm: Alarm,
  isFresh: boolean,
): NotNotified | null {
  if (!isFresh) return 'too-old';
  if (alarm.acknowledgedTs !== null) return 'acknowledged';
  return quietUntil(device, alarm.of) === null ? null : 'snoozed';
}

/** The next fresh measurement announces it, or else the timer. A timer that is already set stays. */
function waitForFresh({ options, nowTs }: DeviceDraft, alarm: Alarm, { event }: FiredAlarm): void {
  alarm.waitsForFresh = true;
  alarm.nextTs ??= nowTs + options.ringMaxAgeMs;
  alarm.lookedTs ??= Math.max(event.ts, ...event.cause.senses.map(({ ts }) => ts));
}

/** An announcement was withdrawn because every delivery failed: only the timer announces it again. */
function isInPause({ told, failures, nextTs }: Alarm, nowTs: WallMs): boolean {
  return told === 'withdrawn' && failures > 0 && nextTs !== null && nextTs > nowTs;
}

/** Requests the notification of an alarm; if there is no draft, of a notice. */
export function askPeople(device: DeviceDraft, draft: AlarmDraft | null, fired: AskedFor): void {
  const { event, actions, name } = fired;
  const place = device.asks.length;
  const type = draft ? 'opened' : 'notice';
  device.asks.push({ draft, type, device: fired.device, event, actions, name });
  if (draft) draft.ask = place;
  if (fired.isFiring !== false)
    device.verdicts.push({ event, because: null, ask: place, isAsking: true });
}

/** `isFiring` false: no firing causes it, so no event records it. */
type AskedFor = Pick<FiredAlarm, 'device' | 'event' | 'actions' | 'name'> & {
  isFiring?: false;
};

function refuse({ verdicts }: DeviceDraft, event: SenseEvent, because: NotNotified): void {
  verdicts.push({ event, because, ask: null, isAsking: false });
}

/** Writes the results of asks (`told`, in the order of `asks`) into their alarms, and into the events of firings. */
export function settle(
  asks: readonly PlannedAsk[],
  told: readonly NotifyResult[],
  verdicts: readonly NotifyVerdict[],
  at: { nowTs: WallMs; options: RuleOptions },
): void {
  for (const [place, asked] of asks.entries()) settleAlarm(asked, answerOf(told[place]), at);
  for (const { event, because, ask, isAsking } of verdicts) {
    const answer = ask === null ? null : answerOf(told[ask]);
    event.notified = answer?.isTold === true && isAsking;
    if (event.notified) continue;
    const why = answer?.isTold === true ? 'same-episode' : (because ?? answer?.why);
    if (why) event.notNotified = why;
  }
}

function settleAlarm(
  { draft }: PlannedAsk,
  { isTold, why }: Answer,
  { nowTs, options }: { nowTs: WallMs; options: RuleOptions },
): void {
  if (!draft) return;
  const { alarm } = draft;
  const isOpen = alarm.closedTs === null;
  alarm.waitsForFresh = false;
  if (!isTold) {
    alarm.notNotified = why;
    note(draft, 'not-told');
    if (isOpen) alarm.nextTs = nowTs + options.ringMaxAgeMs;
    return;
  }
  const { repeatMs } = alarm;
  alarm.told = 'queued';
  alarm.notNotified = null;
  alarm.announcedTs = nowTs;
  alarm.announcement += 1;
  alarm.nextTs = isOpen && repeatMs !== null ? nowTs + repeatMs : null;
  note(draft, 'told');
}

type Answer = { isTold: boolean; why: NotNotified };

function answerOf(told: NotifyResult | undefined): Answer {
  const { queued = 0, planned = 0, notNotified = null } = told ?? {};
  return { isTold: queued + planned > 0, why: notNotified ?? 'no-recipient' };
}

/** How long after a person closed it an alarm whose condition still holds opens again; or `actions.repeatMs`. */
const againMs = 30 * 60_000;

/** Whether its condition holds, by the newest value that was evaluated. */
export const isHolding = ({ closedTs, endsTs }: Alarm): boolean =>
  closedTs === null && endsTs === null;

/** A person closes it; `jobId`: with a job. */
export function closedByPerson(alarm: Alarm, ts: number, jobId: string | undefined): AlarmChange {
  return {
    ...closedAs('person', ts),
    againTs: isHolding(alarm) ? ts + (alarm.repeatMs ?? againMs) : null,
    closedWith: { ...clearedOf(alarm), ...(jobId === undefined ? {} : { jobId }) },
  };
}

/** Until when what a person closed can be opened again, ms after it closed, or after the job ended that closed it. */
export const reopenMs = 60_000;

/**
 * Takes a closing by a person back. `meanwhile`: the alarm that the event has opened since, which it takes in. Null if
 * the condition has ended since.
 */
export function reopened(alarm: Alarm, meanwhile: Alarm | null): AlarmChange | null {
  const { closedWith, againTs } = alarm;
  if (closedWith === null) return null;
  if (againTs === null && closedWith.endsTs === null && meanwhile === null) return null;
  const open = { closedTs: null, closedBy: null, againTs: null, closedWith: null };
  if (!meanwhile) return { ...clearedOf(closedWith), ...open };
  const { lastFiringTs, event, actions, movedTo, endsTs, endsAs, expiresTs } = meanwhile;
  const { overTs, overArrivedTs } = meanwhile;
  const since = { lastFiringTs, event, actions, movedTo, endsTs, endsAs, expiresTs };
  const firings = alarm.firings + meanwhile.firings;
  const known = knownOf(alarm, closedWith, meanwhile);
  return { ...clearedOf(closedWith), ...since, firings, overTs, overArrivedTs, ...known, ...open };
}

/** What people know of an alarm that takes another one in, and when its timer runs: what they know of either. */
function knownOf(alarm: Alarm, closedWith: ClosedWith, meanwhile: Alarm): AlarmChange {
  const acknowledged = alarm.acknowledgedTs === null ? meanwhile : alarm;
  const { acknowledgedTs, acknowledgedBy } = acknowledged;
  const isTold = alarm.told === 'told' || meanwhile.told === 'told';
  const told = meanwhile.announcedTs === null ? alarm.told : meanwhile.told;
  const announcedTs = alarm.announcedTs ?? meanwhile.announcedTs;
  const { nextTs, waitsForFresh } = alarm.announcedTs === null ? meanwhile : closedWith;
  return {
    acknowledgedTs,
    acknowledgedBy,
    told: isTold ? 'told' : told,
    announcedTs,
    announcement: alarm.announcement + meanwhile.announcement,
    failures: meanwhile.failures,
    notNotified: announcedTs === null ? meanwhile.notNotified : null,
    nextTs: acknowledgedTs === null ? nextTs : null,
    waitsForFresh: acknowledgedTs === null && waitsForFresh,
  };
}

/** Whether an alarm that a person closed although it held is to open again by now, or to be forgotten. */
export const isDueAgain = ({ againTs, closedWith }: Alarm, nowTs: WallMs): boolean =>
  (closedWith?.expiresTs ?? Infinity) <= nowTs || (againTs !== null && againTs <= nowTs);

/**
 * Opens alarms for what people closed by force and what still holds; their timer announces them. `isEnded`: the
 * condition has ended, although nobody said so.
 */
export function openAgain(
  device: DeviceDraft,
  nowTs: WallMs,
  isEnded: (alarm: Alarm) => boolean,
): void {
  for (const { alarm } of device.lasting.values()) {
    const { closedWith } = alarm;
    if (!isDueAgain(alarm, nowTs)) continue;
    const isExpired = (closedWith?.expiresTs ?? Infinity) <= nowTs;
    forget(device, (one) => one === alarm);
    if (isExpired || device.open.has(nameKey(alarm.of)) || isEnded(alarm)) continue;
    const anew: Alarm = {
      ...alarm,
      alarmId: 0,
      ...unannounced,
      nextTs: alarm.tells === 'alarm' ? nowTs : null,
      expiresTs: closedWith?.expiresTs ?? null,
      acknowledgedTs: null,
      acknowledgedBy: null,
      closedTs: null,
      closedBy: null,
      againTs: null,
      closedWith: null,
    };
    const draft: AlarmDraft = { alarm: anew, isNew: true, changes: [], ask: null };
    note(draft, 'opened');
    device.open.set(nameKey(anew.of), draft);
  }
}

type AlarmChange = Partial<Omit<Alarm, 'alarmId' | 'device' | 'of'>>;

/** Ends further announcements, by the timer or as repeats. Null if that changes nothing. */
export function acknowledgedAlarm(alarm: Alarm, by: string, ts: number): AlarmChange | null {
  if (alarm.closedTs !== null || alarm.acknowledgedTs !== null) return null;
  return { acknowledgedTs: ts, acknowledgedBy: by, nextTs: null, waitsForFresh: false };
}

/** Withdraws the announcement and the acknowledgement: if the alarm still lasts after the snooze, it is announced. */
export function snoozed(alarm: Alarm, { untilTs }: Pick<Quiet, 'untilTs'>): AlarmChange | null {
  if (alarm.closedTs !== null) return null;
  const isAnnounced = alarm.announcedTs !== null;
  return {
    announcedTs: null,
    acknowledgedTs: null,
    acknowledgedBy: null,
    failures: 0,
    told: isAnnounced ? 'withdrawn' : alarm.told,
    notNotified: alarm.tells === 'alarm' ? 'snoozed' : null,
    nextTs: alarm.tells === 'alarm' ? untilTs : null,
  };
}

/** Lets the timer run if the alarm was not announced, or was postponed until the end of the snooze or mute. */
export function unquieted(alarm: Alarm, nowTs: WallMs, quietUntilTs: number): AlarmChange | null {
  const { closedTs, acknowledgedTs, announcedTs, nextTs, tells } = alarm;
  if (closedTs !== null || acknowledgedTs !== null || tells !== 'alarm') return null;
  const isPutOff = nextTs === quietUntilTs;
  const waits = announcedTs === null && alarm.notNotified === 'snoozed';
  return isPutOff || waits ? { nextTs: nowTs } : null;
}
