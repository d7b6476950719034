import type { FiredSignal } from '../../contract/alarm.ts';
import type { NewEvent, SenseEvent } from '../../contract/event.ts';
import { cutText } from '../../contract/purpose.ts';
import type {
  EventReport,
  Item,
  ProfileAnswer,
  Rejection,
  StateReport,
} from '../../contract/uplink.ts';
import { isSamePlace, type Place } from '../../contract/values.ts';
import { findEvent, type Profile } from '../../engine/compile.ts';
import { broughtBack, enter, hasPlace, startRuntime } from '../../engine/runtime.ts';
import { findNextDue as findNextTick } from '../../engine/timed.ts';
import { nextArrival } from './arrival.ts';
import { applyCommandAnswer } from './commands.ts';
import {
  describe,
  listeningUntil,
  makesAlarms,
  meaningOf,
  recordMove,
  signal,
  signalMove,
  waitFor,
} from './firings.ts';
import { noteGiven, noteInput, noteTick } from './inputs.ts';
import {
  applyConfiguration,
  applyMeasurements,
  checkSense,
  checkTime,
  evaluatedProfile,
  MessageEvaluation,
} from './measurements.ts';
import {
  type Applied,
  type ApplyLimits,
  type Budget,
  type Changes,
  costs,
  type DeviceState,
  type EarliestDue,
  type MessageScope,
  plannedOutcomeOf,
  type Reported,
  type StoredAlready,
  type Fragment,
  type FragmentContent,
} from './model.ts';
import { collectRejections, type RejectionCollector } from './rejections.ts';
import { aheadMs } from './watermark.ts';
import type { WallMs } from '../../lib/clock-readings.ts';

/**
 * Applies one message: adds what has to be written to `rows`, and returns the device's state afterwards and how many
 * items were applied before the budget was spent. That is none if the budget went into what time alone had triggered
 * before. Pure except for `rows` and `budget`, which belong to the transaction being planned.
 */
export function apply(
  before: DeviceState,
  fragment: Fragment,
  rows: Changes,
  limits: ApplyLimits,
  budget: Budget,
  stored: StoredAlready | null,
): Applied {
  // Created when needed: most messages have no rejections.
  let rejections: RejectionCollector | undefined;
  const { message } = fragment;
  const outcome = message.outcome && plannedOutcomeOf(message, rows, limits);
  const reject = (rejection: Rejection) => {
    outcome?.reject(rejection);
    rejections ??= collectRejections(deviceState, fragment, rows, limits);
    budget.spent += rejections.add(rejection) ? costs.rejection : costs.counted;
  };
  const { topic } = message.uplink;
  const { arrivedTs } = message.uplink;
  const arrival = nextArrival(before.arrival, arrivedTs, fragment.size, limits.nowTs);
  const scope: MessageScope = {
    topic,
    arrivedTs: arrival.ts,
    arrival,
    rows,
    limits,
    budget,
    reject,
    stored,
    outcome,
  };
  const lastTs = before.arrival?.ts ?? -Infinity;
  if (arrival.ts < lastTs) noteInput(before, { kind: 'break', body: { lastTs } }, scope);
  const deviceState = noteGiven({ ...before, arrival }, scope);
  // Few profiles have timed members.
  const isTimed = deviceState.current?.profile.isTimed || deviceState.pending?.isTimed;
  const ticked: Ticked = isTimed
    ? runTicks(deviceState, scope, { isTick: fragment.content.kind === 'tick' })
    : { deviceState, isBehind: false };
  const applied = ticked.isBehind
    ? waiting(ticked.deviceState, fragment.content)
    : applyFragment(ticked.deviceState, fragment, scope);
  if (!rejections) return applied;
  const recentRejections = rejections.end();
  if (recentRejections === deviceState.recentRejections) return applied;
  return { ...applied, deviceState: { ...applied.deviceState, recentRejections } };
}

/** A tick does what there is room for, and the next one continues. A message waits until nothing is left before it. */
function waiting(deviceState: DeviceState, content: FragmentContent): Applied {
  return content.kind === 'tick' ? whole(deviceState) : { deviceState, items: 0 };
}

function applyFragment(
  deviceState: DeviceState,
  { content, rejections }: Fragment,
  scope: MessageScope,
): Applied {
  for (const rejection of rejections) scope.reject(rejection);
  if (content.kind === 'tick') return whole(deviceState);
  if (content.kind === 'profile-answer')
    return whole(applyAnswer(deviceState, content.answer, scope));
  if (content.kind === 'profile-request') return whole(applyRequest(deviceState, scope));
  // A device that never asked for a profile is a plain sensor: from here on it runs the pending one. It may have been
  // silent since that was installed.
  const running = deviceState.pending ? runPending(deviceState, scope) : deviceState;
  if (running !== deviceState) noteInput(deviceState, { kind: 'current', body: null }, scope);
  switch (content.kind) {
    case 'measurements':
      return applyMeasurements(running, content.items, scope);
    case 'state':
      return whole(applyState(running, content.report, scope));
    case 'events':
      return applyEvents(running, content.items, scope);
    case 'configuration':
      return whole(applyConfiguration(running, content.configuration, scope));
    case 'command-answer':
      return whole(applyCommandAnswer(running, content.answer, scope));
    case 'time':
      scope.rows.effects.push({
        kind: 'time',
        uuid: deviceState.device.uuid,
        request: content.request,
      });
      return whole(running);
    case 'none':
      return whole(running);
  }
}

/** The result for a message that is a single item. */
function whole(deviceState: DeviceState): Applied {
  return { deviceState, items: 1 };
}

/** The device after what time alone has triggered. `isBehind`: the budget is spent, and there may be more. */
type Ticked = { deviceState: DeviceState; isBehind: boolean };

/**
 * Evaluates what time alone has triggered by the arrival of a message or tick, under the profile that is current then.
 * This happens before the message is looked at, as if each tick had come when it was due. Two states that lead to each
 * other after a second of silence take a step for each second that nobody evaluated. What exceeds the budget is left,
 * and comes before anything else of the device.
 */
function runTicks(
  deviceState: DeviceState,
  scope: MessageScope,
  { isTick }: { isTick: boolean },
): Ticked {
  const { spent, limit } = scope.budget;
  const device = isTick ? bringBack(deviceState, scope) : deviceState;
  const ticked = runDue(device, scope);
  const budget = ticked.isBehind ? { spent, limit } : undefined;
  if (ticked.deviceState !== deviceState) noteTick(deviceState, scope, { isTick, budget });
  return ticked;
}

function runDue(deviceState: DeviceState, scope: MessageScope): Ticked {
  const { arrivedTs } = scope;
  const dueTs = findPendingDue(deviceState, arrivedTs, scope.limits);
  if (dueTs === null || dueTs > arrivedTs) return runUntil(deviceState, arrivedTs, scope);
  const before = runUntil(deviceState, dueTs, scope);
  if (before.isBehind) return before;
  const running = runPending(before.deviceState, { ...scope, arrivedTs: dueTs });
  return runUntil(running, arrivedTs, scope);
}

/**
 * Corrects evidence after the service's clock was ahead and is right again. What the device's events collected
 * meanwhile would be complete only once time has come that far. Each device that was heard then gets a tick
 * (src/clock/after-leap.ts).
 */
function bringBack(deviceState: DeviceState, { arrivedTs, limits }: MessageScope): DeviceState {
  const profile = evaluatedProfile(deviceState);
  if (!profile?.isTimed || !deviceState.runtime) return deviceState;
  const latestTs = arrivedTs + Math.max(0, limits.doubtSpanMs?.() ?? 0) + aheadMs;
  const runtime = broughtBack(profile, deviceState.runtime, latestTs);
  return runtime === deviceState.runtime ? deviceState : { ...deviceState, runtime };
}

function runUntil(deviceState: DeviceState, untilTs: number, scope: MessageScope): Ticked {
  const profile = evaluatedProfile(deviceState);
  // Usually nothing is due; that was found out when the previous message was planned.
  if (!profile?.isTimed || isSurelyQuiet(deviceState, profile, untilTs))
    return { deviceState, isBehind: false };
  const evaluation = new MessageEvaluation(deviceState, scope);
  const isBehind = !evaluation.runUntil(untilTs);
  return { deviceState: evaluation.end(), isBehind };
}

/** Whether the device never asked for a profile, and so runs the pending one from its next message or tick on. */
const isPlain = ({ pending, answersProfiles }: DeviceState) => pending && !answersProfiles;

/** Makes a plain sensor's pending profile current with its message or tick. Silences count from the installation. */
function runPending(deviceState: DeviceState, scope: MessageScope): DeviceState {
  const { pending, pendingTs } = deviceState;
  if (!pending || !isPlain(deviceState)) return deviceState;
  const sinceTs = Math.min(pendingTs ?? scope.arrivedTs, scope.arrivedTs);
  return becomeCurrent(deviceState, pending, {}, scope, sinceTs);
}

/** When time alone makes a plain sensor's pending profile current, ms; null: only a message does. */
function findPendingDue(
  deviceState: DeviceState,
  nowTs: WallMs,
  limits: ApplyLimits,
): number | null {
  const { pending, pendingTs, device } = deviceState;
  if (!pending?.isTimed || pendingTs === null || !isPlain(deviceState)) return null;
  const runtime = startRuntime(pending, pendingTs);
  return findNextTick(pending, runtime, listeningUntil(nowTs, device, limits)).ts;
}

/** Applies a device's answer to a profile. It counts only for the pending or the current profile. */
function applyAnswer(
  deviceState: DeviceState,
  given: ProfileAnswer,
  scope: MessageScope,
): DeviceState {
  const answer = withShortText(deviceState, given, scope);
  const answering = { ...deviceState, answersProfiles: true };
  const { pending, current } = deviceState;
  if (isNews(deviceState, answer)) noteInput(deviceState, { kind: 'answer', body: answer }, scope);
  if (pending?.pId === answer.pId) {
    scope.outcome?.store();
    return answer.state === 'current'
      ? becomeCurrent(answering, pending, answer, scope)
      : refuse({ ...answering, pending: null }, answer, scope);
  }
  if (current?.profile.pId === answer.pId) {
    if (answer.state === 'current') return confirm(answering, answer, scope);
    scope.outcome?.store();
    return refuse({ ...endAlarms(answering, scope), current: null, runtime: null }, answer, scope);
  }
  const waiting = pending
    ? `${pending.pId} is waiting for an answer`
    : 'no profile is waiting for an answer';
  const message = `Profile ${answer.pId} is not pending: ${waiting}.`;
  scope.reject({ reason: 'unknown-profile', message, path: '/pId' });
  return answering;
}

/** Whether an answer changes something, besides that the device answers. */
function isNews(
  { answersProfiles, pending, current }: DeviceState,
  answer: ProfileAnswer,
): boolean {
  const { pId, state, engine = 'service' } = answer;
  if (!answersProfiles || pending?.pId === pId) return true;
  return current?.profile.pId === pId && (state !== 'current' || engine !== current.engine);
}

/** Cuts the text of an answer: the answer counts, however long its text is. */
function withShortText(
  { device }: DeviceState,
  answer: ProfileAnswer,
  { limits }: MessageScope,
): ProfileAnswer {
  const sizes = limits.sizesOf?.(device.accountId);
  if (answer.text === undefined || !sizes) return answer;
  return { ...answer, text: cutText(answer.text, sizes.textLength) };
}

/** From now on the device answers profiles itself. A pending profile, or a current one without its answer, is sent. */
function applyRequest(deviceState: DeviceState, scope: MessageScope): DeviceState {
  const { rows, outcome } = scope;
  rows.effects.push({ kind: 'hand-over', device: deviceState.device });
  if (deviceState.answersProfiles) {
    outcome?.repeat();
    return deviceState;
  }
  outcome?.store();
  noteInput(deviceState, { kind: 'request', body: null }, scope);
  return { ...deviceState, answersProfiles: true };
}

/** Makes the profile current: the device enters the first purpose's initial state. Silences count from `sinceTs`. */
function becomeCurrent(
  deviceState: DeviceState,
  profile: Profile,
  { engine = 'service', text }: Pick<Partial<ProfileAnswer>, 'engine' | 'text'>,
  scope: MessageScope,
  sinceTs: number = scope.arrivedTs,
): DeviceState {
  const { deviceId } = deviceState.device;
  const ts = scope.arrivedTs;
  scope.rows.profiles.push({ deviceId, pId: profile.pId, state: 'current', engine, text, ts });
  const runtime = startRuntime(profile, sinceTs);
  const place = { puId: runtime.puId, stId: runtime.stId };
  const running: DeviceState = {
    ...endAlarms(deviceState, scope),
    current: { profile, engine },
    pending: null,
    pendingTs: null,
    runtime,
  };
  if (place.puId !== deviceState.place.puId) recordMove(running, place, { ts }, scope);
  return { ...running, place, placeTs: ts, reported: null };
}

/** A device that was a plain sensor answers the profile that is current already, or a device answers again. */
function confirm(
  deviceState: DeviceState,
  answer: ProfileAnswer,
  scope: MessageScope,
): DeviceState {
  const { rows, arrivedTs } = scope;
  const { current } = deviceState;
  const engine = answer.engine ?? 'service';
  if (!current || current.engine === engine) {
    scope.outcome?.repeat();
    return deviceState;
  }
  scope.outcome?.store();
  const { deviceId } = deviceState.device;
  const pId = current.profile.pId;
  rows.profiles.push({ deviceId, pId, state: 'current', engine, text: answer.text, ts: arrivedTs });
  const ended = engine === 'device' ? endAlarms(deviceState, scope) : deviceState;
  return { ...ended, current: { ...current, engine } };
}

/** Alarms end with the profile that opened them, and when another engine takes over its evaluation. */
function endAlarms(deviceState: DeviceState, scope: MessageScope): DeviceState {
  if (!makesAlarms(deviceState)) return deviceState;
  signal(deviceState, { kind: 'profile' }, scope);
  return { ...deviceState, waitingSenses: null };
}

function refuse(
  deviceState: DeviceState,
  { pId, text }: ProfileAnswer,
  { rows, arrivedTs: ts }: MessageScope,
): DeviceState {
  const { deviceId } = deviceState.device;
  rows.profiles.push({ deviceId, pId, state: 'rejected', engine: undefined, text, ts });
  return deviceState;
}

/** A device whose due time changes; `dueTs` null: its row is removed. */
export type DueRow = { deviceId: number; accountId: number; dueTs: number | null };

/** `cost`: what finding out took (`Budget`). */
type NextDue = { ts: number | null; earliest: EarliestDue | null; cost: number };

/** The shortest time from one tick to the next, ms. */
const leastMs = 500;

/**
 * The device with its next due time, and how its row changes: always after a tick, after messages only if the time
 * becomes earlier. A row that is too early costs a tick that finds nothing; a write for each change of the time would
 * cost a write with each message. `cost`: what this took (`Budget`).
 */
export function planDue(
  after: DeviceState,
  { arrivedTs, isTick }: { arrivedTs: WallMs; isTick: boolean },
  limits: ApplyLimits,
): { deviceState: DeviceState; row: DueRow | null; cost: number } {
  const { ts: next, earliest: earliestDue, cost } = findDeviceDue(after, arrivedTs, limits);
  if (!isTick && (next === null || (after.dueTs !== null && next >= after.dueTs)))
    return { deviceState: { ...after, earliestDue }, row: null, cost };
  const dueTs = next === null ? null : Math.max(next, arrivedTs + leastMs);
  const { deviceId, accountId } = after.device;
  return {
    deviceState: { ...after, dueTs, earliestDue },
    row: { deviceId, accountId, dueTs },
    cost,
  };
}

/** When the engine wants to be called for the device in this state, ms; null: nothing waits for time alone. */
function findDeviceDue(deviceState: DeviceState, nowTs: WallMs, limits: ApplyLimits): NextDue {
  const { ts: current, ...found } = findCurrentDue(deviceState, nowTs, limits);
  const pending = findPendingDue(deviceState, nowTs, limits);
  const both = current !== null && pending !== null;
  return { ...found, ts: both ? Math.min(current, pending) : (current ?? pending) };
}

function findCurrentDue(deviceState: DeviceState, nowTs: WallMs, limits: ApplyLimits): NextDue {
  const { runtime, device } = deviceState;
  const profile = evaluatedProfile(deviceState);
  if (!profile?.isTimed || !runtime) return { ts: null, earliest: null, cost: 0 };
  const next = findNextTick(profile, runtime, listeningUntil(nowTs, device, limits));
  const { purposes } = profile;
  const earliest = { purposes, runtime, ts: next.earliestTs };
  return { ts: next.ts, earliest, cost: next.cost * costs.cause };
}

/** Whether nothing can be due by then, as was found when the device was last planned. */
function isSurelyQuiet(
  { runtime, earliestDue }: DeviceState,
  profile: Profile,
  untilTs: number,
): boolean {
  if (earliestDue?.runtime !== runtime || earliestDue?.purposes !== profile.purposes) return false;
  return earliestDue.ts === null || earliestDue.ts > untilTs;
}

/** Applies a device's report of its state. It counts unless it is older than the previous report. */
function applyState(
  deviceState: DeviceState,
  report: StateReport,
  scope: MessageScope,
): DeviceState {
  const to: Place = { puId: report.puId, stId: report.stId };
  const ts = report.ts ?? scope.arrivedTs;
  const wrong =
    checkTime(ts, scope, scope.limits.eventMaxAgeMs, '/ts') ?? checkPlace(deviceState, to);
  if (wrong) {
    scope.reject(wrong);
    return deviceState;
  }
  const latestTs = scope.arrivedTs + scope.limits.maxAheadMs;
  const isStamped = report.ts === undefined;
  if (isOldReport(deviceState.reported, { ...to, ts }, { isStamped, latestTs })) {
    scope.outcome?.repeat();
    return deviceState;
  }
  scope.outcome?.store();
  noteInput(deviceState, { kind: 'state', body: report }, scope);
  const reported = { ...to, ts };
  // It is in that state already, so what was collected there stays.
  if (isSamePlace(deviceState.place, to)) return { ...deviceState, placeTs: ts, reported };
  const profile = evaluatedProfile(deviceState);
  recordMove(deviceState, to, { evId: report.evId, ts }, scope);
  signalMove(deviceState, { to, ts, isReport: true }, scope);
  return {
    ...deviceState,
    place: to,
    placeTs: ts,
    reported,
    runtime:
      profile && deviceState.runtime
        ? enter(profile, deviceState.runtime, to, scope.arrivedTs)
        : deviceState.runtime,
  };
}

/** Whether a report is a redelivery or late. Applying it again would undo later changes of state by the service. */
export function isOldReport(
  reported: Reported | null,
  report: Reported,
  { isStamped, latestTs }: { isStamped: boolean; latestTs: number },
): boolean {
  if (!reported) return false;
  if (report.ts === reported.ts && isSamePlace(reported, report)) return true;
  // A report without a time is the newest. A time that nobody could report now comes from a clock that was set back
  // since.
  return !isStamped && reported.ts <= latestTs && report.ts < reported.ts;
}

/** If the service evaluates, the device can only be in a state that its profile has. */
function checkPlace({ current }: DeviceState, place: Place) {
  if (current?.engine !== 'service' || hasPlace(current.profile, place)) return null;
  const { puId, stId } = place;
  const message = `The current profile ${current.profile.pId} has no state ${stId} in a purpose ${puId}.`;
  return { reason: 'unknown-state' as const, message, path: '' };
}

/** Records events that the device's own engine found, and sends their push and SMS: at least one, within the budget. */
function applyEvents(
  before: DeviceState,
  items: Item<EventReport>[],
  scope: MessageScope,
): Applied {
  let deviceState = before;
  let applied = 0;
  while (applied < items.length && (applied === 0 || !scope.budget.isSpent)) {
    const { index, value } = items[applied++] as Item<EventReport>;
    const path = index === null ? '' : `/${index}`;
    const wrong = check(deviceState, value, scope, path);
    if (wrong) scope.reject(wrong);
    else deviceState = keep(deviceState, value, scope);
  }
  return { deviceState, items: Math.max(1, applied) };
}

function check(
  deviceState: DeviceState,
  { cause }: EventReport,
  scope: MessageScope,
  path: string,
) {
  const { eventMaxAgeMs } = scope.limits;
  const wrongTime = checkTime(cause.engine.ts, scope, eventMaxAgeMs, `${path}/cause/engine/ts`);
  if (wrongTime) return wrongTime;
  for (const [index, sense] of cause.senses.entries()) {
    const at = `${path}/cause/senses/${index}`;
    // A position arrives as 1 (inside) or 0, to which the range of its sense does not apply.
    const val = sense.lat === undefined ? sense.val : undefined;
    const wrong = checkSense(deviceState.senses, sense.sId, val, at);
    if (wrong) return wrong;
  }
  return null;
}

/** The key consists of the device's own names for the event, so that a redelivery is the same event. */
function keep(deviceState: DeviceState, { cause }: EventReport, scope: MessageScope): DeviceState {
  const { rows, arrivedTs, limits } = scope;
  const { deviceId, accountId } = deviceState.device;
  const { pId, puId, stId, evId, ts } = cause.engine;
  const key = `${pId}/${puId}/${stId}/${evId}`;
  const event: SenseEvent = { type: 'sense', ts, cause, arrivedTs };
  scope.budget.spent += costs.firing + costs.firingCause * cause.senses.length;
  const meaning = meaningOf(deviceState, cause.engine);
  const contentId = deviceState.current?.profile.contentId;
  const reported: NewEvent = { accountId, deviceId, key, event, meaning, contentId };
  rows.events.push(reported);
  scope.outcome?.report(reported);

  // If the service evaluates, it finds these events itself.
  const { current } = deviceState;
  if (current?.engine !== 'device' || current.profile.pId !== pId) return deviceState;
  const { profile } = current;
  const found = describe(profile, { puId, stId, evId }, deviceState.senses);
  if (!found) return deviceState;
  const isFresh = ts >= arrivedTs - limits.ringMaxAgeMs;
  const movedTo = findEvent(profile, found.of, evId)?.target?.place ?? null;
  const from = cameFrom(deviceState, found, movedTo, ts);
  const began = { ts, arrivedTs };
  const of = { isFirst: true, isFresh, began, isRecorded: true, from, movedTo };
  signal(deviceState, { kind: 'fired', ...found, event, reportKey: key, ...of }, scope);
  return isFresh ? deviceState : waitFor(deviceState, found);
}

/**
 * The state in which the device's engine found an event of that time. The device's report of the state that the event
 * led to may come before or after the event's own. An event of an ordinary state fires in that state. Where an event of
 * a global state fired is known unless a report already says where it led.
 */
function cameFrom(
  { place, reported }: DeviceState,
  { of: { puId, stId }, isGlobal }: Pick<FiredSignal, 'of' | 'isGlobal'>,
  movedTo: Place | null,
  ts: number,
): Place {
  const isReported = reported !== null && isSamePlace(reported, movedTo) && reported.ts >= ts;
  return isGlobal && !isReported ? place : { puId, stId };
}
