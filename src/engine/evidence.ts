import type { Measurement } from '../contract/values.ts';
import { countOnes, lastWord, noWords, wordBits, wordMask } from './arithmetic.ts';
import { begunAfter, notBegun, pair } from './begin.ts';
import type { Began, CauseReader, CompiledCause, LiveEvent, Moment } from './compile.ts';
import {
  type Agreed,
  type CauseEvidence,
  type EventEvidence,
  type Evidence,
  noEventEvidence,
  noEvidence,
} from './runtime.ts';
import { judge } from './thresholds.ts';

export function emptyWindow(baseline: number | undefined): CauseEvidence {
  const agreed = undefined;
  const begun = notBegun;
  return { of: 0, matched: 0, bits: 0, words: null, ahead: 0, leaving: 0, baseline, agreed, begun };
}

/**
 * A window of one outcome that disagreed, without a baseline (`agreedOnce` is its counterpart). All causes that a
 * measurement met share it, so it is never changed, only replaced.
 */
const disagreedOnce: CauseEvidence = { ...emptyWindow(undefined), of: 1 };

/** A copy that `addOutcome` may change. */
function copyOf(evidence: CauseEvidence): CauseEvidence {
  const { of, matched, bits, words, ahead, leaving, baseline, agreed, begun } = evidence;
  const own = words && words.slice();
  return { of, matched, bits, words: own, ahead, leaving, baseline, agreed, begun };
}

/** Whether the window is full of outcomes that disagreed, so that one more changes nothing. */
function isAllDisagreed(evidence: CauseEvidence, { windowLength }: CompiledCause): boolean {
  return evidence.matched === 0 && evidence.of === windowLength;
}

/**
 * Adds an outcome to a window, in place: the measurement that `agreed`, or undefined for one that did not. A long
 * window is complete again after `moveUp`.
 */
export function addOutcome(
  evidence: CauseEvidence,
  { windowLength }: CompiledCause,
  agreed: Agreed | undefined,
): void {
  if (agreed && evidence.matched === windowLength) {
    evidence.agreed = agreed;
    return;
  }
  const outcome = agreed === undefined ? 0 : 1;
  if (evidence.matched > 0 || outcome === 1) {
    const leaving =
      windowLength <= wordBits
        ? shift(evidence, windowLength, outcome)
        : appendOutcome(evidence, windowLength, outcome);
    evidence.matched += outcome - leaving;
  }
  if (evidence.of < windowLength) evidence.of += 1;
  if (agreed) evidence.agreed = agreed;
  if (evidence.matched === 0) empty(evidence);
}

/** Returns the outcome that leaves the window; 0 while it is not full. */
function shift(evidence: CauseEvidence, windowLength: number, outcome: number): number {
  const { bits } = evidence;
  const oldest = windowLength - 1;
  evidence.bits = ((bits & (2 ** oldest - 1)) << 1) | outcome;
  return (bits >> oldest) & 1;
}

/** A window of `of` outcomes, given as words, the newest lowest in the first. */
export function windowOf(
  cause: CompiledCause,
  of: number,
  words: number[],
  { agreed, baseline, begun }: Pick<CauseEvidence, 'agreed' | 'baseline' | 'begun'>,
): CauseEvidence {
  let matched = 0;
  for (const word of words) matched += countOnes(word);
  if (matched === 0) return disagreed(cause, of, baseline);
  const isShort = cause.windowLength <= wordBits;
  const [bits, long] = isShort ? [words[0] ?? 0, null] : [0, words];
  return { of, matched, bits, words: long, ahead: 0, leaving: 0, baseline, agreed, begun };
}

/** A window of `of` outcomes that disagreed. */
export function disagreed(
  { isSingle }: CompiledCause,
  of: number,
  baseline: number | undefined,
): CauseEvidence {
  return isSingle && of === 1 && baseline === undefined
    ? disagreedOnce
    : { ...emptyWindow(baseline), of };
}

/** Whether this evidence makes a cause hold. */
export function holds(cause: CompiledCause, collected: CauseEvidence | null | undefined): boolean {
  return (collected?.matched ?? 0) >= cause.needed;
}

/**
 * Adds several outcomes to a long window at once: at most as many as still fit into the word ahead. The newest is the
 * lowest bit of `outcomes`. `agreed`: the newest measurement that did.
 */
function addOutcomes(
  evidence: CauseEvidence,
  { windowLength }: CompiledCause,
  outcomes: number,
  count: number,
  agreed: Agreed | undefined,
): void {
  evidence.of = Math.min(windowLength, evidence.of + count);
  if (evidence.matched === 0 && outcomes === 0) return;
  if (evidence.ahead === wordBits) moveUp(evidence, windowLength);
  if (evidence.ahead === 0) {
    evidence.words ??= noWords(windowLength);
    evidence.leaving = lastWord(evidence.words, windowLength);
  }
  evidence.ahead += count;
  evidence.bits = (evidence.bits << count) | outcomes;
  const left = (evidence.leaving >> (wordBits - evidence.ahead)) & (2 ** count - 1);
  evidence.matched += countOnes(outcomes) - countOnes(left);
  if (agreed) evidence.agreed = agreed;
  if (evidence.matched === 0) empty(evidence);
}

/** Resets a window in which nothing agrees any more. */
function empty(evidence: CauseEvidence): void {
  evidence.agreed = undefined;
  evidence.bits = 0;
  evidence.words = null;
  evidence.ahead = 0;
  evidence.leaving = 0;
}

/**
 * Adds an outcome to a long window and returns the one that leaves it; 0 while it is not full. The words move up only
 * when the word ahead is full, so most steps cost no more than in a short window.
 */
function appendOutcome(evidence: CauseEvidence, windowLength: number, outcome: number): number {
  if (evidence.ahead === wordBits) moveUp(evidence, windowLength);
  if (evidence.ahead === 0) {
    evidence.words ??= noWords(windowLength);
    evidence.leaving = lastWord(evidence.words, windowLength);
  }
  evidence.ahead += 1;
  evidence.bits = (evidence.bits << 1) | outcome;
  return (evidence.leaving >> (wordBits - evidence.ahead)) & 1;
}

/** Moves the words of a long window up by the outcomes ahead of them, which become part of the first word. */
export function moveUp(evidence: CauseEvidence, windowLength: number): void {
  const { words, ahead } = evidence;
  if (!words || ahead === 0) return;
  const room = wordBits - ahead;
  let below = evidence.bits << room;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as number;
    words[index] = ((word << ahead) & wordMask) | (below >> room);
    below = word;
  }
  const beyond = windowLength % wordBits;
  if (beyond > 0) words[words.length - 1] = (words.at(-1) ?? 0) & (2 ** beyond - 1);
  evidence.bits = 0;
  evidence.ahead = 0;
  evidence.leaving = 0;
}

/**
 * Evidence during evaluation. The evidence it began with never changes: an event or a cause is copied when it first
 * changes, and the copy belongs to the draft.
 */
export class EvidenceDraft {
  readonly #base: Evidence;
  #now: (EventEvidence | null)[] | null = null;
  /** Events whose evidence belongs to the draft. May contain an event twice. */
  readonly #opened: LiveEvent[] = [];

  /** Receives the events whose episodes end. */
  readonly #ended: LiveEvent[];

  constructor(base: Evidence, ended: LiveEvent[]) {
    this.#ended = ended;
    this.#base = base;
  }

  get(index: number): EventEvidence | null {
    return (this.#now ?? this.#base)[index] ?? null;
  }

  /** The evidence it began with, which must not be changed. */
  baseOf(index: number): EventEvidence | null {
    return this.#base[index] ?? null;
  }

  /** The event's evidence, for changing. */
  open(event: LiveEvent): EventEvidence {
    const { index } = event;
    const before = this.get(index);
    if (before && before !== this.#base[index]) return before;
    const own = before ? copyOfEvent(before) : noEventEvidence(event);
    this.set(index, own);
    this.#opened.push(event);
    return own;
  }

  /** The evidence of one of its causes, for changing. */
  openCause(event: LiveEvent, own: EventEvidence, index: number): CauseEvidence {
    const before = own.causes[index] ?? null;
    if (before && before !== this.#base[event.index]?.causes[index]) return before;
    return (own.causes[index] = before ? copyOf(before) : emptyWindow(undefined));
  }

  /** Of these groups (bits) a cause disagreed. Returns whether that ends the event's episode. */
  leaveEpisode(event: LiveEvent, own: EventEvidence, groups: number): boolean {
    own.episode &= ~groups;
    if (own.episode !== 0) return false;
    own.lately = null;
    this.#ended.push(event);
    return true;
  }

  /** The last outcomes of one of its causes in an episode, for changing. */
  openLately(event: LiveEvent, own: EventEvidence, index: number): CauseEvidence {
    const lately = (own.lately ??= event.causes.map(() => null));
    const before = lately[index] ?? null;
    if (before && before !== this.#base[event.index]?.lately?.[index]) return before;
    return (lately[index] = before ? copyOf(before) : emptyWindow(undefined));
  }

  set(index: number, evidence: EventEvidence | null): void {
    const now = (this.#now ??= this.#base.slice());
    while (now.length < index) now.push(null);
    now[index] = evidence;
  }

  /** The evidence so far, except that outcomes may still be ahead of long windows. */
  get current(): Evidence {
    return this.#now ?? this.#base;
  }

  /** Returns the evidence; the very object it began with if nothing changed. Ends the draft. */
  end(): Evidence {
    const [base, now] = [this.#base, this.#now];
    if (!now) return base;
    this.#moveUpWindows(now);
    while (now.length > 0 && now.at(-1) === null) now.pop();
    if (now.length === 0) return base.length === 0 ? base : noEvidence;
    return now.length === base.length && now.every((it, index) => it === base[index]) ? base : now;
  }

  #moveUpWindows(now: Evidence): void {
    for (const { index, causes } of this.#opened) {
      const evidence = now[index];
      moveUpAll(evidence?.causes ?? [], causes);
      moveUpAll(evidence?.lately ?? [], causes);
    }
  }
}

function copyOfEvent({ causes, holding, episode, lately, time }: EventEvidence): EventEvidence {
  return { causes: causes.slice(), holding, episode, lately: lately && lately.slice(), time };
}

/** Moves up long windows of an event's causes, in place. */
export function moveUpAll(
  windows: readonly (CauseEvidence | null)[],
  causes: CompiledCause[],
): void {
  for (let at = 0; at < windows.length; at++) {
    const window = windows[at];
    if (window && window.ahead > 0) moveUp(window, causes[at]?.windowLength ?? 1);
  }
}

/** Which measurement agreed does not matter here. */
const anyAgreed = { val: 1, ts: 0 };

/**
 * Whether an outcome of one of its causes ends the event's episode, as far as its group goes. One that disagrees does.
 * A lenient cause, which holds with n of m outcomes, ends it once more than m - n of its last m outcomes since the
 * episode began disagree; `own.lately` keeps these. `own` is the draft's.
 */
export function endsEpisode(
  draft: EvidenceDraft,
  event: LiveEvent,
  own: EventEvidence,
  index: number,
  agrees: boolean,
): boolean {
  const cause = event.causes[index] as CompiledCause;
  if (cause.slack === 0) return !agrees;
  const window = draft.openLately(event, own, index);
  addOutcome(window, cause, agrees ? anyAgreed : undefined);
  window.agreed = undefined;
  return window.of - window.matched > cause.slack;
}

/** A measurement, and the one-outcome window it makes if it agrees. All causes that it meets share this object. */
export type GivenValue = Pick<Measurement, 'val'> & { moment: Moment; once: CauseEvidence };

/**
 * Adds a measurement to what an event's reading causes have collected. Returns the event's evidence, or null if it did
 * not change: no cause evaluates such a value, or it repeats earlier outcomes. `isLeaving`: only causes that disagree
 * take it.
 */
export function collect(
  { event, causes: indexes, limits }: CauseReader,
  draft: EvidenceDraft,
  given: GivenValue,
  isLeaving: boolean,
): EventEvidence | null {
  const { val, once } = given;
  const base = draft.baseOf(event.index);
  let before = draft.get(event.index);
  const isInEpisode = before !== null && before.episode !== 0;
  let own: EventEvidence | null = null;
  let left = 0;
  for (let at = 0; at < indexes.length; at++) {
    const index = indexes[at] as number;
    const cause = event.causes[index] as CompiledCause;
    const collected = before?.causes[index] ?? null;
    const agrees =
      limits && typeof val === 'number'
        ? agreesWithLimits(limits, at, val)
        : judge(cause, val, collected?.baseline);
    if (agrees === null || (agrees && isLeaving)) continue;
    // In an episode, no window of a group that goes on is full of outcomes that disagreed.
    if (!agrees && (collected === disagreedOnce || isAsBefore(collected, cause, val))) continue;
    before = own ??= draft.open(event);
    if (isInEpisode && endsEpisode(draft, event, own, index, agrees)) left |= 1 << cause.group;
    if (cause.isSingle) {
      own.holding += (agrees ? 1 : 0) - (collected?.matched ?? 0);
      own.causes[index] = agrees ? once : disagreedOnce;
    } else {
      const isOwn = collected !== null && collected !== base?.causes[index];
      const window = isOwn ? collected : draft.openCause(event, own, index);
      own.holding += collectMore(cause, window, given, agrees);
    }
  }
  if (!own) return null;
  if (event.groups)
    own.holding = groupsOf(event.groups, (at) =>
      holds(event.causes[at] as CompiledCause, own.causes[at]),
    );
  if (left !== 0) draft.leaveEpisode(event, own, left);
  return own;
}

/** Whether a number agrees with the cause at index `at` of a reader's limits. Equivalent to `judge`. */
function agreesWithLimits(limits: Float64Array, at: number, val: number): boolean {
  const from = 3 * at;
  const meets = val > (limits[from] as number) && val < (limits[from + 1] as number);
  return meets !== (limits[from + 2] === 1);
}

/** Whether a measurement that disagrees leaves a cause's evidence unchanged. */
function isAsBefore(
  collected: CauseEvidence | null,
  cause: CompiledCause,
  val: Measurement['val'],
): boolean {
  return collected !== null && !beginsAt(val, cause, collected) && isAllDisagreed(collected, cause);
}

/** The measurement as something that began with it. While stored evidence is read again its arrival is not known. */
export const beganAt = ({ moment }: GivenValue): Began => ({
  ts: moment.t,
  arrivedTs: Number.isNaN(moment.arrivedTs) ? null : moment.arrivedTs,
});

/** Returns by how much the number of causes that hold changes. */
function collectMore(
  cause: CompiledCause,
  window: CauseEvidence,
  given: GivenValue,
  agrees: boolean,
): -1 | 0 | 1 {
  const { matched } = window;
  const { val, once } = given;
  const held = matched >= cause.needed;
  if (typeof val === 'number' && beginsAt(val, cause, window)) window.baseline = val + 0;
  addOutcome(window, cause, agrees ? once.agreed : undefined);
  if (cause.keepsBegin !== null)
    window.begun = begunAfter(cause.keepsBegin, window, matched, agrees ? beganAt(given) : null);
  const holds = window.matched >= cause.needed;
  if (holds === held) return 0;
  return holds ? 1 : -1;
}

/** Whether a measurement fires an event that is spent at once (`isSpentAtOnce`). Nothing is collected for it. */
export function isSpent(
  { event }: CauseReader,
  draft: EvidenceDraft,
  val: Measurement['val'],
): boolean {
  if (draft.get(event.index) !== null) return false;
  for (const cause of event.causes) if (judge(cause, val, undefined) !== true) return false;
  return true;
}

/** Whether this is the first value that a relative cause evaluates. */
function beginsAt(
  val: Measurement['val'],
  { relative }: CompiledCause,
  { baseline }: CauseEvidence,
) {
  return relative && baseline === undefined && typeof val === 'number';
}

/**
 * Whether every cause of the event holds, or every cause of one of its groups that are `among` these (bits): a silence
 * goes on holding after it has fired. An event without causes never completes.
 */
export function isComplete(
  { causes, groups }: LiveEvent,
  { holding }: EventEvidence,
  among: number,
): boolean {
  return groups ? (holding & among) !== 0 : causes.length > 0 && holding === causes.length;
}

/** The groups of which all causes hold, as bits. `holdsAt`: whether the cause of that index does. */
export function groupsOf(
  groups: NonNullable<LiveEvent['groups']>,
  holdsAt: (index: number) => boolean,
): number {
  let bits = 0;
  for (let group = 0; group < groups.length; group += 1)
    if ((groups[group] as readonly number[]).every(holdsAt)) bits |= 1 << group;
  return bits;
}

/** The indexes of the causes that fire a complete event: all, or those of the first of these groups that holds. */
export function firingCauses(
  { causes, groups }: LiveEvent,
  { holding }: EventEvidence,
  among: number,
): readonly number[] {
  return groups?.find((_, group) => (holding & among & (1 << group)) !== 0) ?? [...causes.keys()];
}

/** Does what `collect` does, with several numbers at once, none of which completes the event. */
function collectDeferred(
  { event, causes: indexes, limits }: CauseReader,
  draft: EvidenceDraft,
  vals: number[],
  givens: GivenValue[],
  from: number,
  end: number,
): void {
  if (!limits) return;
  let own: EventEvidence | null = null;
  for (let at = 0; at < indexes.length; at++) {
    const index = indexes[at] as number;
    const cause = event.causes[index] as CompiledCause;
    const above = limits[3 * at] as number;
    const below = limits[3 * at + 1] as number;
    const meets = limits[3 * at + 2] === 1 ? 0 : 1;
    const before = (own ?? draft.get(event.index))?.causes[index] ?? null;
    const held = (before?.matched ?? 0) >= cause.needed;
    let window: CauseEvidence | null = null;
    for (let first = from; first < end;) {
      const room = wordBits - (((window ?? before)?.ahead ?? 0) % wordBits);
      const next = Math.min(end, first + room);
      let outcomes = 0;
      for (let n = first; n < next; n++) {
        const val = vals[n] as number;
        outcomes = (outcomes << 1) | (val > above && val < below ? meets : 1 - meets);
      }
      const count = next - first;
      first = next;
      if (!window) {
        if (outcomes === 0 && before && isAllDisagreed(before, cause)) continue;
        own ??= draft.open(event);
        window = draft.openCause(event, own, index);
      }
      // The newest outcome that agreed is the lowest bit.
      const newest = outcomes === 0 ? undefined : givens[next - 1 - lowestOne(outcomes)];
      addOutcomes(window, cause, outcomes, count, newest?.once.agreed);
      if (cause.keepsBegin !== null) {
        // As many of the newest agreed.
        const inRow = Math.min(count, lowestOne(~outcomes));
        const began = inRow === 0 ? undefined : givens[next - inRow];
        if (!began) window.begun = notBegun;
        else if (inRow < count || window.begun?.length === 0) window.begun = pair(beganAt(began));
      }
    }
    if (window && own) own.holding += Number(window.matched >= cause.needed) - Number(held);
  }
}

const lowestOne = (bits: number): number => 31 - Math.clz32(bits & -bits);

/** By readers: those of the state's own events, or those of global ones. */
export type Deferred = Map<CauseReader[], DeferredNumbers>;

/** Fewer measurements than this are collected one by one. */
const leastDeferred = 8;

/**
 * Numbers of one sense that its readers take later, together, if their event does not fire. With long windows, a
 * cause that lacks 500 outcomes cannot hold for the next 499 measurements; taking these cause by cause costs a tenth
 * of taking each alone. With windows of one outcome, one cause that disagrees shows that the event does not fire, and
 * only the newest number counts.
 */
class DeferredNumbers {
  readonly #readers: CauseReader[];
  readonly #vals: number[] = [];
  readonly #givens: GivenValue[] = [];
  /** By reader: the last cause that kept its event from firing, as an index into the reader's limits. */
  readonly #blocking: number[];
  /** By reader with `isNewestOnly`: whether its event is in an episode, which a number that disagrees ends. */
  readonly #isOpen: boolean[];
  /** By reader: the first number it has not collected, and the first one it must take at once. */
  readonly #from: number[];
  readonly #until: number[];
  /** The reader that is being offered the newest number; later readers have not been offered it yet. */
  #offering: number;

  constructor(readers: CauseReader[], draft: EvidenceDraft) {
    this.#readers = readers;
    this.#isOpen = readers.map((reader) => isOpen(reader, draft));
    this.#from = readers.map(() => 0);
    this.#until = readers.map(() => 0);
    this.#blocking = readers.map(() => 0);
    this.#offering = readers.length;
  }

  /** Adds a number, which each reader must then take or defer. */
  push(val: number, given: GivenValue): void {
    this.#vals.push(val);
    this.#givens.push(given);
  }

  /** Whether the reader defers the newest number. If not, it has now collected all earlier ones. */
  defers(index: number, draft: EvidenceDraft): boolean {
    this.#offering = index;
    const newest = this.#vals.length - 1;
    const val = this.#vals[newest] as number;
    if (newest < (this.#until[index] as number)) {
      if (!this.#isWatched(index, val, draft)) return true;
    } else if (this.#isBlocked(index, val)) {
      this.#until[index] = newest + 1;
      return true;
    }
    this.#collect(index, newest, draft);
    return false;
  }

  /** Call it once the reader has collected the newest number. */
  offered(index: number, draft: EvidenceDraft): void {
    const next = this.#vals.length;
    this.#from[index] = next;
    const reader = this.#readers[index] as CauseReader;
    this.#isOpen[index] = isOpen(reader, draft);
    const ahead = numbersToDefer(reader, draft);
    this.#until[index] = ahead < leastDeferred ? next : next + ahead;
  }

  /** Call it once all readers have been offered the newest number. */
  endOffer(): void {
    this.#offering = this.#readers.length;
  }

  /** Collects what is deferred. The object must not be used afterwards. */
  end(draft: EvidenceDraft): void {
    const count = this.#vals.length;
    for (let index = 0; index < this.#readers.length; index++)
      this.#collect(index, index < this.#offering ? count : count - 1, draft);
  }

  /** Whether this number may end an episode of the reader's event, which must be reported at once. */
  #isWatched(index: number, val: number, draft: EvidenceDraft): boolean {
    const reader = this.#readers[index] as CauseReader;
    const { event, causes, limits } = reader;
    if (!limits || !isOpen(reader, draft)) return false;
    if (event.isLenient) return true;
    for (let at = 0; at < causes.length; at++) if (!agreesWithLimits(limits, at, val)) return true;
    return false;
  }

  /** Whether a reader with `isNewestOnly` has a cause that disagrees with this number. */
  #isBlocked(index: number, val: number): boolean {
    const { isNewestOnly, limits, causes } = this.#readers[index] as CauseReader;
    if (!isNewestOnly || !limits || this.#isOpen[index]) return false;
    const last = this.#blocking[index] as number;
    if (!agreesWithLimits(limits, last, val)) return true;
    for (let at = 0; at < causes.length; at++) {
      if (agreesWithLimits(limits, at, val)) continue;
      this.#blocking[index] = at;
      return true;
    }
    return false;
  }

  #collect(index: number, end: number, draft: EvidenceDraft): void {
    const from = this.#from[index] as number;
    this.#from[index] = end;
    // A reader that takes a number before the first one it may skip has nothing deferred.
    if (from >= end || from >= (this.#until[index] as number)) return;
    const reader = this.#readers[index] as CauseReader;
    const newest = end - 1;
    if (reader.isNewestOnly) collect(reader, draft, this.#givens[newest] as GivenValue, false);
    else collectDeferred(reader, draft, this.#vals, this.#givens, from, end);
  }
}

/** Adds the number to the readers' deferred ones; null if no reader defers any, or if the value is no number. */
export function deferInto(
  readers: CauseReader[],
  all: Deferred,
  given: GivenValue,
  draft: EvidenceDraft,
): DeferredNumbers | null {
  const { val } = given;
  let deferred = all.get(readers);
  if (typeof val !== 'number') {
    // `isAny` agrees with positions too.
    deferred?.end(draft);
    all.delete(readers);
    return null;
  }
  if (!deferred) {
    if (!readers.some(({ isLong, isNewestOnly }) => isLong || isNewestOnly)) return null;
    all.set(readers, (deferred = new DeferredNumbers(readers, draft)));
  }
  deferred.push(val, given);
  return deferred;
}

/** Whether the reader's event is in an episode. */
function isOpen({ event }: CauseReader, draft: EvidenceDraft): boolean {
  return event.hasEpisodes && (draft.get(event.index)?.episode ?? 0) !== 0;
}

/** How many more numbers cannot fire the reader's event, because one of its causes lacks more outcomes. */
function numbersToDefer({ event, causes, isLong }: CauseReader, draft: EvidenceDraft): number {
  if (!isLong) return 0;
  const collected = draft.get(event.index)?.causes;
  let most = 0;
  for (const index of causes) {
    const lacks =
      (event.causes[index] as CompiledCause).needed - (collected?.[index]?.matched ?? 0);
    if (lacks > most) most = lacks;
  }
  return most - 1;
}
