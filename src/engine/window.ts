import type { Measurement } from '../contract/values.ts';
import { countOnes, lastWord, noWords, wordBits, wordMask } from './arithmetic.ts';
import type { CompiledCause, LiveEvent, Moment } from './compile.ts';
import {
  type Agreed,
  type CauseEvidence,
  type EventEvidence,
  type Evidence,
  noEventEvidence,
  noEvidence,
} from './runtime.ts';

export function emptyWindow(baseline: number | undefined): CauseEvidence {
  const agreed = undefined;
  return { of: 0, matched: 0, bits: 0, words: null, ahead: 0, leaving: 0, baseline, agreed };
}

/**
 * What a window of one outcome has, without a baseline, when it disagreed; and when it agreed. These are shared
 * by all causes that a measurement met, and never changed: such a window gets another one instead.
 */
export const disagreedOnce: CauseEvidence = { ...emptyWindow(undefined), of: 1 };

export function agreedOnce(agreed: Agreed): CauseEvidence {
  const baseline = undefined;
  return { of: 1, matched: 1, bits: 1, words: null, ahead: 0, leaving: 0, baseline, agreed };
}

/** A copy that `addOutcome` may change. */
function copyOf(evidence: CauseEvidence): CauseEvidence {
  const { of, matched, bits, words, ahead, leaving, baseline, agreed } = evidence;
  return { of, matched, bits, words: words && words.slice(), ahead, leaving, baseline, agreed };
}

/** Whether an outcome that disagrees leaves the window as it is: it is full of such. */
export function isAllDisagreed(evidence: CauseEvidence, { windowLength }: CompiledCause): boolean {
  return evidence.matched === 0 && evidence.of === windowLength;
}

/**
 * Adds an outcome to a window, in place: a measurement that `agreed`, or undefined for one that did not.
 * A long window is whole again after `moveUp`.
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

/** Gives the outcome that leaves the window: 0 while it is not full. */
function shift(evidence: CauseEvidence, windowLength: number, outcome: number): number {
  const { bits } = evidence;
  const oldest = windowLength - 1;
  evidence.bits = ((bits & (2 ** oldest - 1)) << 1) | outcome;
  return (bits >> oldest) & 1;
}

/** A window of `of` outcomes, given in words, the newest lowest in the first. */
export function windowOf(
  cause: CompiledCause,
  of: number,
  words: number[],
  { agreed, baseline }: Pick<CauseEvidence, 'agreed' | 'baseline'>,
): CauseEvidence {
  let matched = 0;
  for (const word of words) matched += countOnes(word);
  if (matched === 0) return disagreed(cause, of, baseline);
  const isShort = cause.windowLength <= wordBits;
  const [bits, long] = isShort ? [words[0] ?? 0, null] : [0, words];
  return { of, matched, bits, words: long, ahead: 0, leaving: 0, baseline, agreed };
}

/** A window of so many outcomes that disagreed. */
export function disagreed(
  { isSingle }: CompiledCause,
  of: number,
  baseline: number | undefined,
): CauseEvidence {
  return isSingle && of === 1 && baseline === undefined
    ? disagreedOnce
    : { ...emptyWindow(baseline), of };
}

/** Whether so much evidence makes a cause hold. */
export function holds(cause: CompiledCause, collected: CauseEvidence | null | undefined): boolean {
  return (collected?.matched ?? 0) >= cause.needed;
}

/**
 * Adds some outcomes to a long window at once, as many as are missing to a whole word ahead at most, the newest lowest in `outcomes`; `agreed`: the newest measurement that did.
 */
export function addOutcomes(
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

/** Of a window in which nothing agrees any more. */
function empty(evidence: CauseEvidence): void {
  evidence.agreed = undefined;
  evidence.bits = 0;
  evidence.words = null;
  evidence.ahead = 0;
  evidence.leaving = 0;
}

/** Adds an outcome to a long window, and gives the one that leaves it: 0 while it is not full. The window is moved up only where a
 * word of outcomes is full: a step costs no more. */
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

/** Moves the words of a long window up by what is ahead of them, which becomes a part of the first. */
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
 * Evidence while it is worked on. What it began with is never changed: an event, and a cause of it, is
 * copied when it changes for the first time, and is the draft's own from then on.
 */
export class EvidenceDraft {
  readonly #base: Evidence;
  #now: (EventEvidence | null)[] | null = null;
  /** Whose evidence is the draft's own; an event can be there twice. */
  readonly #opened: LiveEvent[] = [];

  /** Gets the events whose episodes end. */
  readonly #ended: LiveEvent[];

  constructor(base: Evidence, ended: LiveEvent[]) {
    this.#ended = ended;
    this.#base = base;
  }

  get(index: number): EventEvidence | null {
    return (this.#now ?? this.#base)[index] ?? null;
  }

  /** What it began with, which is not to be changed. */
  baseOf(index: number): EventEvidence | null {
    return this.#base[index] ?? null;
  }

  /** The event's evidence, to be changed. */
  open(event: LiveEvent): EventEvidence {
    const { index } = event;
    const before = this.get(index);
    if (before && before !== this.#base[index]) return before;
    const own = before ? copyOfEvent(before) : noEventEvidence(event);
    this.set(index, own);
    this.#opened.push(event);
    return own;
  }

  /** The evidence of one of its causes, to be changed. */
  openCause(event: LiveEvent, own: EventEvidence, index: number): CauseEvidence {
    const before = own.causes[index] ?? null;
    if (before && before !== this.#base[event.index]?.causes[index]) return before;
    return (own.causes[index] = before ? copyOf(before) : emptyWindow(undefined));
  }

  endEpisode(event: LiveEvent, own: EventEvidence): void {
    own.isInEpisode = false;
    own.lately = null;
    this.#ended.push(event);
  }

  /** The last outcomes of one of its causes in an episode, to be changed. */
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

  /** What it is now, but for what is still ahead of long windows. */
  get current(): Evidence {
    return this.#now ?? this.#base;
  }

  /** What it has become; the very object it began with if that is as it was. The draft is over then. */
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

function copyOfEvent({ causes, holding, isInEpisode, lately, time }: EventEvidence): EventEvidence {
  return { causes: causes.slice(), holding, isInEpisode, lately: lately && lately.slice(), time };
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
 * Whether an outcome of one of its causes ends the event's episode: one that disagrees does. A lenient cause, which
 * holds with n of m outcomes, disagrees when more than m - n of its last m since the episode began did: these are
 * kept in `own.lately`. `own` is the draft's.
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

/** A measurement, and what it makes of a window of one where it agrees: all causes that it meets have this object. */
export type GivenValue = Pick<Measurement, 'val'> & { moment: Moment; once: CauseEvidence };
