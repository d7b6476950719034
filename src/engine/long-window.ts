import type { CompiledCause } from './compile-cause.ts';
import type { Agreed, CauseEvidence } from './runtime.ts';
import { countOnes, lastWord, noWords, wordBits, wordMask } from './words.ts';

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
export function empty(evidence: CauseEvidence): void {
  evidence.agreed = undefined;
  evidence.bits = 0;
  evidence.words = null;
  evidence.ahead = 0;
  evidence.leaving = 0;
}

/** Adds an outcome to a long window, and gives the one that leaves it: 0 while it is not full. The window is moved up only where a
 * word of outcomes is full: a step costs no more. */
export function appendOutcome(
  evidence: CauseEvidence,
  windowLength: number,
  outcome: number,
): number {
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
