import type { LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import type { Agreed, CauseEvidence, Evidence, EventEvidence, Runtime } from './runtime.ts';
import { encodeWords, lettersOf } from './stored-words.ts';

/**
 * A runtime as it is stored: JSON, and short, because all of it is written whenever some of it changed.
 * What causes have not collected is not there, and measurements that agreed, which many causes have in
 * common, stand in a table.
 *
 * ```text
 * { v: 2, puId, stId, agreed: [[val, ts], …], local: { "stId/evId": event }, global: { … } }
 * event:  [rung, cause, …]           rung is 1 or 0; the last causes are left out where they are 0
 * cause:  0                          nothing is collected
 *         [of]                       none of so many outcomes agreed
 *         [of, outcomes, agreed]     agreed: the newest that did, by its number in the table
 *         [of, outcomes, agreed, baseline]     with none that agreed: [of, 0, -1, baseline]
 * outcomes: 1 where all agreed, else text of base64's characters, six outcomes each, the newest first
 * ```
 */
export function encodeRuntime(profile: Profile, runtime: Runtime): string {
  const { puId, stId } = runtime;
  const purpose = profile.purposes.get(puId);
  const agreed = new Table();
  const local = encodeEvidence(purpose?.states.get(stId)?.events ?? [], runtime.local, agreed);
  const global = encodeEvidence(purpose?.globalEvents ?? [], runtime.global, agreed);
  return `{"v":2,"puId":${puId},"stId":${stId},"agreed":[${agreed.texts.join()}],"local":{${local}},"global":{${global}}}`;
}

/** Causes that one measurement met have the same object. */
class Table {
  readonly texts: string[] = [];
  readonly #numbers = new Map<Agreed, number>();

  numberOf(agreed: Agreed): number {
    const known = this.#numbers.get(agreed);
    if (known !== undefined) return known;
    this.#numbers.set(agreed, this.texts.length);
    this.texts.push(JSON.stringify([agreed.val, agreed.ts]));
    return this.texts.length - 1;
  }
}

function encodeEvidence(events: LiveEvent[], evidence: Evidence, agreed: Table): string {
  let text = '';
  for (let index = 0; index < evidence.length; index++) {
    const [event, collected] = [events[index], evidence[index]];
    if (!event || !collected) continue;
    text += `${text === '' ? '' : ','}"${event.key}":${encodeEvent(event, collected, agreed)}`;
  }
  return text;
}

function encodeEvent(event: LiveEvent, { causes, rung }: EventEvidence, agreed: Table): string {
  let text = rung ? '[1' : '[0';
  let skipped = '';
  for (let index = 0; index < causes.length; index++) {
    const collected = causes[index];
    if (!collected) {
      skipped += ',0';
      continue;
    }
    text += `${skipped},${encodeCause(collected, event.causes[index]?.windowLength ?? 1, agreed)}`;
    skipped = '';
  }
  return `${text}]`;
}

function encodeCause(collected: CauseEvidence, windowLength: number, agreed: Table): string {
  const { of, matched, baseline } = collected;
  if (matched === 0) return baseline === undefined ? `[${of}]` : `[${of},0,-1,${baseline}]`;
  const outcomes = matched === of ? '1' : `"${encodeOutcomes(collected, windowLength)}"`;
  const number = collected.agreed ? agreed.numberOf(collected.agreed) : -1;
  const end = baseline === undefined ? ']' : `,${baseline}]`;
  return `[${of},${outcomes},${number}${end}`;
}

function encodeOutcomes({ bits, words }: CauseEvidence, windowLength: number): string {
  return encodeWords(words ?? [bits]).slice(0, lettersOf(windowLength));
}
