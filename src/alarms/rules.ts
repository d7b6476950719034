import { type Actions, type Announced, asksForMove } from '../contract/actions.ts';
import type {
  AlarmChangeKind,
  AlarmSignal,
  AlarmTold,
  Closing,
  FiredSignal,
} from '../contract/alarm.ts';
import type { EventName, NotNotified, SenseEvent } from '../contract/event.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';
import { isSamePlace, type Place } from '../contract/values.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Takes in one signal of a device, in the order in which they happened. */
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
        if (draft && draft.alarm.movedTo === null && !draft.alarm.isReported)
          end(device, draft, 'cleared', arrivedTs);
      }
      return;
    case 'moved':
      if (isSamePlace(signal.from, signal.to)) return;
      for (const draft of open())
        if (endsByMove(draft.alarm, signal.to, signal.isReport))
          end(device, draft, 'left-state', arrivedTs);
      return;
    case 'heard':
      hear(device, signal);
      return;
    case 'profile':
      for (const draft of open()) close(device, draft, 'profile', arrivedTs);
      device.isProfileOver = true;
      return;
    case 'configuration': {
      const left = new Set(signal.sIds);
      for (const draft of open())
        if (draft.alarm.sIds.some((sId) => !left.has(sId)))
          close(device, draft, 'configuration', arrivedTs);
    }
  }
}

/** What began too old to be told is told with the next fresh measurement that leaves it open. */
function hear(device: DeviceDraft, { sIds }: AlarmSignal & { kind: 'heard' }): void {
  for (const draft of device.open.values()) {
    const { alarm } = draft;
    const waits = alarm.waitsForFresh && alarm.announcedTs === null && draft.ask === null;
    if (!waits || alarm.endsTs !== null || !alarm.sIds.some((sId) => sIds.includes(sId))) continue;
    if (whyNobody(device, alarm, true) !== null) continue;
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

/** What changes of an alarm that closes. */
export function closedAs(closedBy: Closing, closedTs: number): Partial<Alarm> {
  const nothingLeft = { endsTs: null, endsAs: null, expiresTs: null, nextTs: null };
  return { ...nothingLeft, closedBy, closedTs, waitsForFresh: false };
}

/** What an alarm stands for is over: it closes, or `actions.keepMs` keeps it open for a while. */
function end(device: DeviceDraft, draft: AlarmDraft, as: Closing, nowTs: WallMs): void {
  const { alarm } = draft;
  if (alarm.endsTs !== null) return;
  const { keepMs = 0 } = alarm.actions;
  if (keepMs === 0) {
    close(device, draft, as, nowTs);
    return;
  }
  alarm.endsTs = nowTs + keepMs;
  alarm.endsAs = as;
  note(draft, 'ending');
}

/** When an alarm closes by itself, and as what; null: it does not. */
function dueClosing({ endsTs, endsAs, expiresTs }: Alarm): { ts: number; as: Closing } | null {
  const ends = endsTs !== null && endsAs !== null ? { ts: endsTs, as: endsAs } : null;
  if (expiresTs === null || (ends && ends.ts <= expiresTs)) return ends;
  return { ts: expiresTs, as: 'expired' };
}

/** Closes what was due before this time. */
export function closeDue(device: DeviceDraft, nowTs: WallMs): void {
  for (const draft of device.open.values()) {
    const due = dueClosing(draft.alarm);
    if (due && due.ts <= nowTs) close(device, draft, due.as, due.ts);
  }
}

/**
 * Whether a move ends what an alarm stands for. One of a reported event ends only by a report, of a state
 * that the event does not lead to; one that moved the device with the state it led to; any other with the state
 * of its event, or the purpose where that state is global.
 */
function endsByMove(alarm: Alarm, to: Place, isReport: boolean): boolean {
  const { of, movedTo, isReported, isGlobal } = alarm;
  if (isReported) return isReport && !isSamePlace(movedTo, to);
  if (movedTo) return !isSamePlace(movedTo, to);
  return of.puId !== to.puId || (!isGlobal && of.stId !== to.stId);
}

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
type NotifyVerdict = {
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
  verdicts: NotifyVerdict[];
  /** The snoozes of the profile that ended are gone. */
  isProfileOver: boolean;
  options: RuleOptions;
  /** When people are told, ms: what arrived, or was due, may be hours older. */
  nowTs: WallMs;
};

type FiredAlarm = AlarmSignal & FiredSignal;

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
function note({ changes }: AlarmDraft, kind: AlarmChangeKind): void {
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
export function quietNow(quiet: Quiet | null | undefined, nowTs: WallMs): Quiet | null {
  if (!quiet || quiet.untilTs <= nowTs) return null;
  const { untilTs, reason, by } = quiet;
  return { untilTs, reason, by };
}

/** As text, to find an event by. */
export const nameKey = ({ puId, stId, evId }: EventName): string => `${puId}/${stId}/${evId}`;

/** The alarm that a firing opens; `alarmId` is given by who stores it. */
function openedBy(signal: FiredSignal & { device: DeviceIdentity }): Alarm {
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

/** An event fired: a notice is told, an alarm opens or goes on. A report that is too old is neither. */
function fireAlarm(device: DeviceDraft, fired: FiredAlarm): void {
  if (fired.tells === 'notice') {
    fireNotice(device, fired);
    return;
  }
  if (fired.reportKey !== undefined && !fired.isFresh) {
    if (fired.tells === 'alarm') refuse(device, fired.event, 'too-old');
    return;
  }
  const draft = device.open.get(nameKey(fired.of)) ?? open(device, fired);
  goOn(device, draft, fired);
  if (fired.tells === 'alarm') tellFiring(device, draft, fired);
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
  const draft: AlarmDraft = { alarm: openedBy(fired), isNew: true, changes: [], ask: null };
  note(draft, 'opened');
  const { carried } = device.before;
  const isCarried =
    carried !== null && !device.isProfileOver && !carried.known.has(nameKey(fired.of));
  // An episode that began before there were alarms was told of then.
  if (isCarried && !fired.isFirst && fired.tells === 'alarm')
    Object.assign(draft.alarm, { told: 'told', announcedTs: device.nowTs, announcement: 1 });
  device.open.set(nameKey(fired.of), draft);
  return draft;
}

/** The firing is the alarm's newest; it takes back that what the alarm stands for was over. */
function goOn({ options, nowTs }: DeviceDraft, draft: AlarmDraft, fired: FiredAlarm): void {
  const { alarm } = draft;
  const { event, actions, arrivedTs } = fired;
  Object.assign(alarm, { event, actions, lastFiringTs: event.ts, firings: alarm.firings + 1 });
  alarm.movedTo = lastsWith(alarm, fired);
  // Its timer was put off until the end that does not come.
  if (alarm.endsTs !== null && alarm.nextTs === alarm.endsTs) alarm.nextTs = nowTs;
  alarm.endsTs = alarm.endsAs = null;
  alarm.expiresTs = alarm.isReported ? arrivedTs + options.reportedForMs : null;
  note(draft, 'fired');
}

/** The state that the alarm lasts with: another one, or the one that it lasts with already, entered anew. */
function lastsWith(alarm: Alarm, { from, movedTo, reportKey }: FiredAlarm): Place | null {
  if (reportKey !== undefined) return movedTo;
  const isAnother = movedTo !== null && !isSamePlace(movedTo, from);
  return isAnother || isSamePlace(movedTo, alarm.movedTo) ? movedTo : null;
}

/** Who is told of this firing, or why nobody is. */
function tellFiring(device: DeviceDraft, draft: AlarmDraft, fired: FiredAlarm): void {
  const { alarm } = draft;
  const { event, isFresh } = fired;
  if (draft.ask !== null) {
    // It tells of this firing too, or nobody can be told of either.
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
  const why = whyNobody(device, alarm, isFresh);
  if (!why) {
    askPeople(device, draft, fired);
    return;
  }
  refuse(device, event, why);
  alarm.notNotified = why;
  if (why === 'too-old') waitForFresh(device, alarm, fired);
  else if (why === 'snoozed') alarm.nextTs = quietUntil(device, alarm.of);
}

/** Why nobody is told of an alarm that is not announced; null: its channels have to say. */
function whyNobody(device: DeviceDraft, alarm: Alarm, isFresh: boolean): NotNotified | null {
  if (!isFresh) return 'too-old';
  if (alarm.acknowledgedTs !== null) return 'acknowledged';
  return quietUntil(device, alarm.of) === null ? null : 'snoozed';
}

/** NotifyResult by the next fresh measurement, or by the timer. Where it looks already, that stays. */
function waitForFresh({ options, nowTs }: DeviceDraft, alarm: Alarm, { event }: FiredAlarm): void {
  alarm.waitsForFresh = true;
  alarm.nextTs ??= nowTs + options.ringMaxAgeMs;
  alarm.lookedTs ??= Math.max(event.ts, ...event.cause.senses.map(({ ts }) => ts));
}

/** An announcement was taken back because every delivery failed: its timer tells it again, and nothing before. */
function isInPause({ told, failures, nextTs }: Alarm, nowTs: WallMs): boolean {
  return told === 'withdrawn' && failures > 0 && nextTs !== null && nextTs > nowTs;
}

/** Has people be told of an alarm, or of a notice where there is no draft. */
export function askPeople(device: DeviceDraft, draft: AlarmDraft | null, fired: AskedFor): void {
  const { event, actions, name } = fired;
  const place = device.asks.length;
  const type = draft ? 'opened' : 'notice';
  device.asks.push({ draft, type, device: fired.device, event, actions, name });
  if (draft) draft.ask = place;
  if (fired.isFiring !== false)
    device.verdicts.push({ event, because: null, ask: place, isAsking: true });
}

/** `isFiring` false: it is told of without one, and no event says so. */
type AskedFor = Pick<FiredAlarm, 'device' | 'event' | 'actions' | 'name'> & {
  isFiring?: false;
};

function refuse({ verdicts }: DeviceDraft, event: SenseEvent, because: NotNotified): void {
  verdicts.push({ event, because, ask: null, isAsking: false });
}

/** How many messages an ask made, for now and for later; both 0: why none. */
export type NotifyResult = { queued: number; planned: number; notNotified: NotNotified | null };

/** Writes what became of asks into their alarms, and into the events of the firings. `told`: in their order. */
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

type AlarmChange = Partial<Omit<Alarm, 'alarmId' | 'device' | 'of'>>;

/** Nobody is told of it again: by its timer or a repeat. Null where that changes nothing. */
export function acknowledgedAlarm(alarm: Alarm, by: string, ts: number): AlarmChange | null {
  if (alarm.closedTs !== null || alarm.acknowledgedTs !== null) return null;
  return { acknowledgedTs: ts, acknowledgedBy: by, nextTs: null, waitsForFresh: false };
}

/** An announcement and an acknowledgement are taken back: what is still true when it ends is told then. */
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

/** Its timer tells what is not announced, or has been put off until the quiet's end. */
export function unquieted(alarm: Alarm, nowTs: WallMs, quietUntilTs: number): AlarmChange | null {
  const { closedTs, acknowledgedTs, announcedTs, nextTs, tells } = alarm;
  if (closedTs !== null || acknowledgedTs !== null || tells !== 'alarm') return null;
  const isPutOff = nextTs === quietUntilTs;
  const waits = announcedTs === null && alarm.notNotified === 'snoozed';
  return isPutOff || waits ? { nextTs: nowTs } : null;
}
