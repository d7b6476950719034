import type { CompiledCause } from './compile-event.ts';
import type { Agreed, CauseEvidence } from './runtime.ts';
import { wordBits } from './word-bits.ts';

const wordMask = 2 ** wordBits - 1;

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
export function copyOf(evidence: CauseEvidence): CauseEvidence {
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
        : append(evidence, windowLength, outcome);
    evidence.matched += outcome - leaving;
  }
  if (evidence.of < windowLength) evidence.of += 1;
  if (agreed) evidence.agreed = agreed;
  if (evidence.matched === 0) empty(evidence);
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

function empty(evidence: CauseEvidence): void {
  evidence.agreed = undefined;
  evidence.bits = 0;
  evidence.words = null;
  evidence.ahead = 0;
  evidence.leaving = 0;
}

/** Gives the outcome that leaves the window: 0 while it is not full. */
function shift(evidence: CauseEvidence, windowLength: number, outcome: number): number {
  const { bits } = evidence;
  const oldest = windowLength - 1;
  evidence.bits = ((bits & (2 ** oldest - 1)) << 1) | outcome;
  return (bits >> oldest) & 1;
}

/** The same with a long window, which is moved up only where a word of outcomes is full: a step costs no more. */
function append(evidence: CauseEvidence, windowLength: number, outcome: number): number {
  if (evidence.ahead === wordBits) moveUp(evidence, windowLength);
  if (evidence.ahead === 0) {
    evidence.words ??= noWords(windowLength);
    evidence.leaving = lastWord(evidence.words, windowLength);
  }
  evidence.ahead += 1;
  evidence.bits = (evidence.bits << 1) | outcome;
  return (evidence.leaving >> (wordBits - evidence.ahead)) & 1;
}

/** The oldest 30 outcomes that a long window has room for. */
function lastWord(words: number[], windowLength: number): number {
  const youngest = windowLength - wordBits;
  const [index, from] = [Math.floor(youngest / wordBits), youngest % wordBits];
  const [word, older] = [words[index] ?? 0, words[index + 1] ?? 0];
  return (word >> from) | ((older << (wordBits - from)) & wordMask);
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

/** Room for so many outcomes, none of which agreed. */
export function noWords(windowLength: number): number[] {
  const words: number[] = [];
  for (let room = 0; room < windowLength; room += wordBits) words.push(0);
  return words;
}

/** The words of a window in which the outcome of that age (the newest has 0) agreed. */
export function wordsOfWindow(windowLength: number, agreed: (age: number) => boolean): number[] {
  const words = noWords(windowLength);
  for (let age = 0; age < windowLength; age++) {
    if (!agreed(age)) continue;
    const index = Math.floor(age / wordBits);
    words[index] = (words[index] ?? 0) | (1 << (age % wordBits));
  }
  return words;
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

/** In pairs, then fours, then bytes, and all bytes summed up in the highest one. */
function countOnes(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
