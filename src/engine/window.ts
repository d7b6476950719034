import type { CompiledCause } from './compile-cause.ts';
import type { Agreed, CauseEvidence } from './runtime.ts';
import { appendOutcome, empty } from './long-window.ts';
import { countOnes, wordBits } from './words.ts';

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
