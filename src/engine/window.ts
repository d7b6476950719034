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
 * A window of one outcome without a baseline, if it disagreed or agreed. All causes that a measurement met share
 * these objects, so they are never changed, only replaced.
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

/** Whether the window is full of outcomes that disagreed, so that one more changes nothing. */
export function isAllDisagreed(evidence: CauseEvidence, { windowLength }: CompiledCause): boolean {
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
  { agreed, baseline }: Pick<CauseEvidence, 'agreed' | 'baseline'>,
): CauseEvidence {
  let matched = 0;
  for (const word of words) matched += countOnes(word);
  if (matched === 0) return disagreed(cause, of, baseline);
  const isShort = cause.windowLength <= wordBits;
  const [bits, long] = isShort ? [words[0] ?? 0, null] : [0, words];
  return { of, matched, bits, words: long, ahead: 0, leaving: 0, baseline, agreed };
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

  endEpisode(event: LiveEvent, own: EventEvidence): void {
    own.isInEpisode = false;
    own.lately = null;
    this.#ended.push(event);
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
 * Whether an outcome of one of its causes ends the event's episode. One that disagrees does. A lenient cause, which
 * holds with n of m outcomes, ends it once more than m - n of its last m outcomes since the episode began disagree;
 * `own.lately` keeps these. `own` is the draft's.
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
