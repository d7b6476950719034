import { asksForMove } from '../contract/actions.ts';
import type { SenseEvent } from '../contract/event.ts';
import type { NotNotified } from '../contract/not-notified.ts';
import { isSamePlace, type Place } from '../contract/place.ts';
import { type Alarm, nameKey, openedBy } from './alarm.ts';
import {
  type AlarmDraft,
  type DeviceDraft,
  type FiredAlarm,
  note,
  quietUntil,
} from './rules/draft.ts';

/** An event fired: a notice is told, an alarm opens or goes on. A report that is too old is neither. */
export function fireAlarm(device: DeviceDraft, fired: FiredAlarm): void {
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
export function whyNobody(device: DeviceDraft, alarm: Alarm, isFresh: boolean): NotNotified | null {
  if (!isFresh) return 'too-old';
  if (alarm.acknowledgedTs !== null) return 'acknowledged';
  return quietUntil(device, alarm.of) === null ? null : 'snoozed';
}

/** Told by the next fresh measurement, or by the timer. Where it looks already, that stays. */
function waitForFresh({ options, nowTs }: DeviceDraft, alarm: Alarm, { event }: FiredAlarm): void {
  alarm.waitsForFresh = true;
  alarm.nextTs ??= nowTs + options.ringMaxAgeMs;
  alarm.lookedTs ??= Math.max(event.ts, ...event.cause.senses.map(({ ts }) => ts));
}

/** An announcement was taken back because every delivery failed: its timer tells it again, and nothing before. */
function isInPause({ told, failures, nextTs }: Alarm, nowTs: number): boolean {
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
