import type { LiveEvent } from './compile-event.ts';
import type { CauseEvidence, EventEvidence } from './runtime.ts';

type Known = { event: LiveEvent; evidence: EventEvidence; number: number };

/**
 * What events have collected, as text and each once. What is alike is found before it is written down: to
 * compare windows takes a fraction of the time that writing them does.
 */
export class EventTable {
  readonly texts: string[] = [];
  readonly #known = new Map<number, Known[]>();

  numberOf(event: LiveEvent, evidence: EventEvidence, encode: () => string): number {
    const hash = hashOf(evidence);
    const alike = this.#known.get(hash);
    const known = alike?.find((other) => isSame(other, event, evidence));
    if (known) return known.number;
    const number = this.texts.push(encode()) - 1;
    const added: Known = { event, evidence, number };
    if (alike) alike.push(added);
    else this.#known.set(hash, [added]);
    return number;
  }
}

/** Of what most often differs. Where nothing is collected counts for nothing, as in the text. */
function hashOf({ causes, isInEpisode }: EventEvidence): number {
  let hash = isInEpisode ? 1 : 0;
  for (let index = 0; index < causes.length; index++) {
    const collected = causes[index];
    if (!collected) continue;
    const { of, matched, bits, words } = collected;
    const first = words ? (words[0] ?? 0) ^ (words[1] ?? 0) : bits;
    hash = (Math.imul(hash, 31) + Math.imul(of, 17) + matched + index) ^ first;
  }
  return hash;
}

/** Whether both have the same text. */
function isSame({ event, evidence }: Known, other: LiveEvent, given: EventEvidence): boolean {
  if (evidence.isInEpisode !== given.isInEpisode) return false;
  if (evidence.lately !== given.lately || evidence.time !== given.time) return false;
  const count = Math.max(evidence.causes.length, given.causes.length);
  for (let index = 0; index < count; index++) {
    const [one, alike] = [evidence.causes[index] ?? null, given.causes[index] ?? null];
    if (!haveSame(one, alike)) return false;
    // Outcomes are as many letters as the window has room for, unless all or none of them agreed.
    const isWritten = one !== null && one.matched > 0 && one.matched < one.of;
    if (isWritten && lengthOf(event, index) !== lengthOf(other, index)) return false;
  }
  return true;
}

const lengthOf = ({ causes }: LiveEvent, index: number) => causes[index]?.windowLength;

function haveSame(one: CauseEvidence | null, other: CauseEvidence | null): boolean {
  if (one === other) return true;
  if (!one || !other) return false;
  return (
    one.of === other.of &&
    one.matched === other.matched &&
    one.bits === other.bits &&
    one.agreed === other.agreed &&
    Object.is(one.baseline, other.baseline) &&
    haveSameWords(one.words, other.words)
  );
}

function haveSameWords(one: number[] | null, other: number[] | null): boolean {
  if (!one || !other) return one === other;
  for (let index = 0; index < one.length; index++) if (one[index] !== other[index]) return false;
  return one.length === other.length;
}
