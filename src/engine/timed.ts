import type { Measurement } from '../contract/values.ts';
import { begunAfter, newestBegun } from './begin.ts';
import { addToBins, statisticOf, wordBits, wordsOfWindow } from './arithmetic.ts';
import type { CauseReader, CompiledCause, LiveEvent, Profile } from './compile.ts';
import { afterListening, afterPauses, type Listening, pauseMs } from './last-seen.ts';
import {
  type Agreed,
  type CauseEvidence,
  type CauseTime,
  type EventEvidence,
  type EventTime,
  goOn,
  noTime,
  type Runtime,
} from './runtime.ts';
import { comparedNumber, judge } from './thresholds.ts';
import {
  addOutcome,
  beganAt,
  type EvidenceDraft,
  emptyWindow,
  endsEpisode,
  type GivenValue,
  groupsOf,
  holds,
  moveUp,
  moveUpAll,
  windowOf,
} from './evidence.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** A cause, and its verdict on a measurement. `agrees` is null while there is nothing to compare. */
type Found = {
  event: LiveEvent;
  index: number;
  draft: EvidenceDraft;
  own: EventEvidence;
  t: number;
  agrees: boolean | null;
};

/** Adds a measurement to a cause's evidence. Returns whether it ends its group's episode. Changes `own` and `time`. */
function takeOutcome(found: Found, time: CauseTime, given: GivenValue): boolean {
  const { event, index, draft, own, agrees } = found;
  const cause = event.causes[index] as CompiledCause;
  if (agrees !== null) takeInto(found, cause, time, given);
  if (own.episode !== 0 && agrees !== null && isAgedLenient(cause))
    time.lately = [...(time.lately ?? []), { t: found.t, agrees }].slice(-cause.windowLength);
  const { lately } = time;
  setTime(own, index, time);
  if (own.episode === 0 || agrees === null) return false;
  if (!lately) return endsEpisode(draft, event, own, index, agrees);
  return lately.filter((outcome) => !outcome.agrees).length > cause.slack;
}

/** For causes with `maxAgeMs`. */
function forgetLately(own: EventEvidence): void {
  if (!own.time) return;
  const causes = own.time.causes.map((time) => (time?.lately ? { ...time, lately: null } : time));
  own.time = { ...own.time, causes };
}

/** For these, outcomes that are too old do not count for an episode either. */
function isAgedLenient({ slack, time }: CompiledCause): boolean {
  return slack > 0 && (time?.maxAgeMs ?? null) !== null;
}

/** Changes `time`, which is new. */
function takeInto(
  { event, index, draft, own, t, agrees }: Found,
  cause: CompiledCause,
  time: CauseTime,
  given: GivenValue,
): void {
  const { val, moment, once } = given;
  const { agreed } = once;
  const { forMs = null, noneForMs = null, maxAgeMs = null } = cause.time ?? {};
  if (noneForMs !== null) {
    time.silence = { sinceTs: moment.arrivedTs, completeTs: null };
    return;
  }
  const window = draft.openCause(event, own, index);
  if (cause.relative && typeof val === 'number') window.baseline ??= val + 0;
  if (agrees) time.agreedT = t;
  const { matched } = window;
  const { keepsBegin } = cause;
  if (forMs !== null) countInRun(window, agrees ? agreed : undefined);
  else addOutcome(window, cause, agrees ? agreed : undefined);
  if (keepsBegin !== null)
    window.begun = begunAfter(keepsBegin, window, matched, agrees ? beganAt(given) : null);
  if (forMs !== null) {
    const asked = { forMs, needed: cause.needed };
    time.run = agrees ? goOn(time.run, asked, window.of, t, moment) : null;
  } else if (maxAgeMs !== null) {
    time.outcomeTs = [...(time.outcomeTs ?? []), t].slice(-cause.windowLength);
  }
}

/** A run only counts its outcomes, all of which agreed. */
function countInRun(window: CauseEvidence, agreed: Agreed | undefined): void {
  const count = agreed ? window.of + 1 : 0;
  window.of = count;
  window.matched = count;
  window.agreed = agreed;
}

function setTime(own: EventEvidence, index: number, time: CauseTime): void {
  const { newestT = null, causes: before = [] } = own.time ?? {};
  const causes = before.slice();
  if (index < causes.length) causes[index] = time;
  own.time = { newestT, causes };
}

/**
 * Drops outcomes that are older than `maxAgeMs`, and runs whose newest outcome is. Age counts back from the newest
 * time of any of the event's causes or ticks, which includes `t`. Changes `own`, which is the draft's.
 */
export function dropOld(
  event: LiveEvent,
  draft: EvidenceDraft,
  own: EventEvidence,
  t: number,
): void {
  if (!event.isAged || !own.time) return;
  const newestT = Math.max(own.time.newestT ?? t, t);
  const causes = own.time.causes.map((time, index) => {
    const cause = event.causes[index] as CompiledCause;
    const { maxAgeMs = null } = cause.time ?? {};
    if (!time || maxAgeMs === null) return time;
    const oldestT = newestT - maxAgeMs;
    const lately = time.lately?.filter((outcome) => outcome.t >= oldestT) ?? null;
    if (time.run && time.run.newestT < oldestT) {
      own.causes[index] = emptyWindow(own.causes[index]?.baseline);
      return { ...time, lately, run: null };
    }
    const kept = time.outcomeTs?.filter((outcomeT) => outcomeT >= oldestT) ?? null;
    if (!kept || kept.length === time.outcomeTs?.length) return { ...time, lately };
    const window = draft.openCause(event, own, index);
    own.causes[index] = newestOf(window, cause, kept.length);
    return { ...time, lately, outcomeTs: kept } satisfies CauseTime;
  });
  own.time = { newestT, causes };
}

/** A window with the newest `count` of its outcomes. */
function newestOf(window: CauseEvidence, cause: CompiledCause, count: number): CauseEvidence {
  moveUp(window, cause.windowLength);
  const given = window.words ?? [window.bits];
  const hasAgreed = (age: number) =>
    (((given[Math.floor(age / wordBits)] ?? 0) >> (age % wordBits)) & 1) === 1;
  const words = wordsOfWindow(cause.windowLength, (age) => age < count && hasAgreed(age));
  // Copied, because `windowOf` may return a shared object.
  const left = windowOf(cause, count, words, window);
  return { ...left, begun: newestBegun(window.begun, left.matched) };
}

/** A cause's verdict. `agrees` is null while there is nothing to compare. */
type Verdict = { time: CauseTime; agrees: boolean | null };

/** Like `collect`, for an event with time members. */
export function collectTimed(
  { event, causes: indexes }: CauseReader,
  draft: EvidenceDraft,
  given: GivenValue,
  isLeaving: boolean,
): EventEvidence | null {
  let own: EventEvidence | null = null;
  let left = 0;
  for (const index of indexes) {
    const cause = event.causes[index] as CompiledCause;
    const before = own ?? draft.get(event.index);
    const known = before?.time?.causes[index] ?? noTime;
    const t = Math.max(given.moment.t, known.lastT ?? -Infinity);
    const verdict = judgeInTime(cause, known, given.val, t, before?.causes[index]?.baseline);
    if (!verdict || (isLeaving && verdict.agrees !== false)) continue;
    own ??= draft.open(event);
    dropOld(event, draft, own, t);
    const { agrees } = verdict;
    // `own` no longer has what is too old. Written out, because most measurements come here, and a spread is slow.
    const { agreedT, run, silence, outcomeTs, lately } = own.time?.causes[index] ?? noTime;
    const { bins, compared } = verdict.time;
    const time = { lastT: t, agreedT, compared, run, silence, bins, outcomeTs, lately };
    if (takeOutcome({ event, index, draft, own, t, agrees }, time, given)) left |= 1 << cause.group;
    // Once more, because the new outcome itself may be too old to count.
    dropOld(event, draft, own, t);
  }
  if (!own) return null;
  if (left !== 0 && draft.leaveEpisode(event, own, left)) forgetLately(own);
  return own.time ? withTime(event, own, own.time) : own;
}

/** The time that an event gave a measurement taken at `t`: within one cause, time never goes back. */
export function timeOf(
  { causes: indexes }: CauseReader,
  { time }: EventEvidence,
  t: number,
): number {
  const last = indexes.map((index) => time?.causes[index]?.lastT ?? t);
  return Math.max(t, ...last);
}

/** Null if the cause does not evaluate such a value. */
function judgeInTime(
  cause: CompiledCause,
  known: CauseTime,
  val: Measurement['val'],
  t: number,
  baseline: number | undefined,
): Verdict | null {
  const { over = null, noneForMs = null } = cause.time ?? {};
  if (noneForMs !== null) return { time: known, agrees: false };
  if (!over) {
    const agrees = judge(cause, val, baseline);
    if (agrees === null) return null;
    if (!agrees || !cause.relative) return { time: known, agrees };
    // For a position nothing is compared.
    const compared = typeof val === 'number' ? comparedNumber(cause, val, baseline) : undefined;
    return { time: { ...known, compared }, agrees };
  }
  if (typeof val !== 'number' || cause.reads === 'positions' || cause.reads === 'nothing')
    return null;
  const bins = addToBins(known.bins, over, t, val + 0);
  const statistic = statisticOf(bins, over, t);
  if (statistic === null) return { time: { ...known, bins }, agrees: null };
  const agrees = judge(cause, statistic, undefined);
  const compared = agrees ? comparedNumber(cause, statistic, undefined) : known.compared;
  return { time: { ...known, bins, compared }, agrees };
}

/** Whether a cause of an event with time members holds. */
export function holdsInTime(
  cause: CompiledCause,
  collected: CauseEvidence | null | undefined,
  time: CauseTime | null | undefined,
): boolean {
  if (cause.time?.noneForMs) return typeof time?.silence?.completeTs === 'number';
  if (cause.time?.forMs) return time?.run?.isComplete === true;
  return holds(cause, collected);
}

/** Sets what time members keep, and the number of causes that then hold. Changes and returns `own`. */
export function withTime(event: LiveEvent, own: EventEvidence, time: EventTime): EventEvidence {
  own.time = time;
  own.holding = 0;
  const { causes, groups } = event;
  if (groups) {
    const holdsAt = (at: number) =>
      holdsInTime(causes[at] as CompiledCause, own.causes[at], time.causes[at]);
    own.holding = groupsOf(groups, holdsAt);
    return own;
  }
  for (let at = 0; at < causes.length; at += 1)
    if (holdsInTime(causes[at] as CompiledCause, own.causes[at], time.causes[at])) own.holding += 1;
  return own;
}

/** What remains after a firing: runs end, silences and bins continue. */
export function usedUp({ newestT, causes }: EventTime): EventTime {
  return { newestT, causes: causes.map((time) => time && { ...withoutOutcomes(time), run: null }) };
}

function withoutOutcomes(time: CauseTime): CauseTime {
  return { ...time, agreedT: null, compared: undefined, outcomeTs: null };
}

/**
 * What remains when a firing enters the state anew or names its purpose: windows, baselines and bins are emptied,
 * while episodes, runs and silences continue. Null if nothing remains.
 */
export function leftAtReentry(event: LiveEvent, evidence: EventEvidence): EventEvidence | null {
  const { episode, lately, time } = evidence;
  if (episode === 0 && !time) return null;
  // The next draft must begin with complete windows.
  if (lately) moveUpAll(lately, event.causes);
  const causes = evidence.causes.map((collected, index) =>
    collected && time?.causes[index]?.run ? withoutBaseline(collected) : null,
  );
  const left: EventEvidence = { causes, holding: 0, episode, lately, time: null };
  if (!time) return left;
  const { newestT } = time;
  return withTime(event, left, { newestT, causes: time.causes.map((it) => it && anew(it)) });
}

function anew(time: CauseTime): CauseTime {
  return { ...(time.run ? time : withoutOutcomes(time)), bins: null };
}

/** For a run, whose outcomes are only counted. */
function withoutBaseline({ of, matched, agreed, begun }: CauseEvidence): CauseEvidence {
  return { ...emptyWindow(undefined), of, matched, agreed, begun };
}

/**
 * When a device's next tick is due, in ms; null if nothing waits. `earliestTs`: the same if its connector had always
 * listened, which is never later. `cost`: what the search took, in causes that judge a measurement.
 */
type NextDue = { ts: number | null; earliestTs: number | null; cost: number };

const alwaysListening: Listening = { gaps: [] };

/** Finds the next tick in a stored runtime. During evaluation, `Evaluator.nextDueTs` does the same. */
export function findNextDue(
  profile: Profile,
  runtime: Runtime,
  listening: Listening = alwaysListening,
): NextDue {
  const events = waitingAt(profile, runtime);
  const earliestTs = earliestOf(events, runtime, alwaysListening);
  const hasGaps = earliestTs !== null && listening.gaps.length > 0;
  const ts = hasGaps ? earliestOf(events, runtime, listening) : earliestTs;
  return { ts, earliestTs, cost: events.reduce((sum, { causes }) => sum + causes.length, 0) };
}

function earliestOf(events: LiveEvent[], runtime: Runtime, listening: Listening): number | null {
  const known = { listening, nowTs: -Infinity };
  let next: number | null = null;
  for (const event of events) {
    const evidence = (event.isGlobal ? runtime.global : runtime.local)[event.index] ?? null;
    for (const { ts } of ticksOf(event, evidence, known)) if (next === null || ts < next) next = ts;
  }
  return next;
}

/** Live events that may wait for a tick. */
function waitingAt(profile: Profile, { puId, stId }: Runtime): LiveEvent[] {
  const purpose = profile.purposes.get(puId);
  const own = purpose?.states.get(stId)?.timed.ticking ?? [];
  const global = purpose?.globalTimed.ticking ?? [];
  return global.length === 0 ? own : [...own, ...global.filter((event) => event.stId !== stId)];
}

/**
 * A cause whose evidence will be complete at `t`. Its tick runs at `ts`, or just before the first measurement of its
 * sense that is later than `t`; for a silence only at `ts`. Ms.
 */
export type Tick = { event: LiveEvent; index: number; t: number; ts: number };

/** What is known of listening. A gap that lasts counts until `nowTs` at least. */
export type KnownListening = { listening: Listening; nowTs: WallMs };

/** The ticks that an event waits for, in the order of its causes. */
export function ticksOf(
  event: LiveEvent,
  evidence: EventEvidence | null,
  known: KnownListening,
): Tick[] {
  const ticks: Tick[] = [];
  for (const [index, cause] of event.causes.entries()) {
    const time = evidence?.time?.causes[index];
    const due = time && dueOf(cause, time, known);
    if (due) ticks.push({ event, index, ...due });
  }
  return ticks;
}

function dueOf(
  cause: CompiledCause,
  time: CauseTime,
  { listening, nowTs }: KnownListening,
): { t: number; ts: number } | null {
  const ts = dueTsOf(cause, time, listening, nowTs);
  if (ts === Infinity) return null;
  const { run, silence } = time;
  if (run?.due && !run.isComplete) return { t: run.due.t, ts };
  const sinceTs = silence?.sinceTs ?? 0;
  return { t: afterListening(sinceTs, cause.time?.noneForMs ?? 0, listening, nowTs), ts };
}

/** When the tick of a cause is due, ms; Infinity: it waits for none. */
export function dueTsOf(
  { time: members }: CompiledCause,
  time: CauseTime | null | undefined,
  listening: Listening,
  nowTs: WallMs,
): number {
  if (!time) return Infinity;
  const { run, silence } = time;
  if (run?.due && !run.isComplete) return afterPauses(run.due.ts, pauseMs, listening, nowTs);
  if (!silence || silence.completeTs !== null || !members?.noneForMs) return Infinity;
  const { noneForMs } = members;
  const t = afterListening(silence.sinceTs, noneForMs, listening, nowTs);
  return afterPauses(t, Math.min(pauseMs, noneForMs), listening, nowTs);
}

/** By due time, then by when the evidence is complete. Stable. */
export function inOrder(ticks: Tick[]): Tick[] {
  return ticks.toSorted((one, other) => one.ts - other.ts || one.t - other.t);
}

/** Whether the event still waits for that tick. */
export function isWaiting({ index, t }: Tick, evidence: EventEvidence | null): boolean {
  const { run, silence } = evidence?.time?.causes[index] ?? {};
  if (run) return !run.isComplete && run.due?.t === t;
  return silence?.completeTs === null;
}
