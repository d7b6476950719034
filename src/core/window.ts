import type { CompiledCause } from './compile-event.ts';
import type { Agreed, CauseEvidence } from './runtime.ts';

/** Outcomes in a word: what is shifted stays one of V8's small integers, and makes five characters of base64. */
export const wordBits = 30;
const wordMask = 2 ** wordBits - 1;

export function emptyWindow(baseline: number | undefined): CauseEvidence {
  return { of: 0, matched: 0, bits: 0, words: null, baseline, agreed: undefined };
}

/** A copy that `addOutcome` may change. */
export function copyOf(evidence: CauseEvidence): CauseEvidence {
  const { of, matched, bits, words, baseline, agreed } = evidence;
  return { of, matched, bits, words: words && words.slice(), baseline, agreed };
}

/** Whether an outcome that disagrees leaves the window as it is: it is full of such. */
export function isAllDisagreed(evidence: CauseEvidence, { windowLength }: CompiledCause): boolean {
  return evidence.matched === 0 && evidence.of === windowLength;
}

/** Adds an outcome to a window, in place: a measurement that `agreed`, or undefined for one that did not. */
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
        : shiftWords(evidence, windowLength, outcome);
    evidence.matched += outcome - leaving;
  }
  if (evidence.of < windowLength) evidence.of += 1;
  if (agreed) evidence.agreed = agreed;
  if (evidence.matched === 0) {
    evidence.agreed = undefined;
    evidence.words = null;
  }
}

/** Gives the outcome that leaves the window: 0 while it is not full. */
function shift(evidence: CauseEvidence, windowLength: number, outcome: number): number {
  const { bits } = evidence;
  const oldest = windowLength - 1;
  evidence.bits = ((bits & (2 ** oldest - 1)) << 1) | outcome;
  return (bits >> oldest) & 1;
}

function shiftWords(evidence: CauseEvidence, windowLength: number, outcome: number): number {
  const words = (evidence.words ??= noWords(windowLength));
  let carried = outcome;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as number;
    words[index] = ((word << 1) & wordMask) | carried;
    carried = (word >> (wordBits - 1)) & 1;
  }
  const last = words.length - 1;
  const oldest = (windowLength - 1) % wordBits;
  // What is carried out of a last word that is full, or the bit beyond the end of one that is not.
  if (oldest === wordBits - 1) return carried;
  const beyond = 1 << (oldest + 1);
  const word = words[last] as number;
  words[last] = word & (beyond - 1);
  return (word & beyond) === 0 ? 0 : 1;
}

/** Room for so many outcomes, none of which agreed. */
export function noWords(windowLength: number): number[] {
  const words: number[] = [];
  for (let room = 0; room < windowLength; room += wordBits) words.push(0);
  return words;
}

/** The words of a window in which the outcome of that age (the newest has 0) agreed. */
export function wordsOf(windowLength: number, agreed: (age: number) => boolean): number[] {
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
  { windowLength }: CompiledCause,
  of: number,
  words: number[],
  { agreed, baseline }: Pick<CauseEvidence, 'agreed' | 'baseline'>,
): CauseEvidence {
  let matched = 0;
  for (const word of words) matched += countOnes(word);
  if (matched === 0) return { ...emptyWindow(baseline), of };
  return windowLength <= wordBits
    ? { of, matched, bits: words[0] ?? 0, words: null, baseline, agreed }
    : { of, matched, bits: 0, words, baseline, agreed };
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
