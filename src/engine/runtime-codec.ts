import type { LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import { encodeTime } from './encode-time.ts';
import { encodeWords, lettersOf } from './encode-words.ts';
import { EventTable } from './event-table.ts';
import type { Agreed, CauseEvidence, EventEvidence, Evidence, Runtime } from './runtime.ts';

/**
 * A runtime as it is stored: JSON, and short, because all of it is written whenever some of it changed.
 * What causes have not collected is not there. Measurements that agreed, and what whole events have, stand
 * in tables, because many have them in common.
 *
 * ```text
 * { v: 2, log: number, puId, stId, agreed: [[val, ts], …], events: [event, …], local: { "stId/evId": number }, global: { … } }
 * log:    what was added to it since is in the rows of `evidence_log` with this base; absent: nothing
 * number: of the event's evidence in the table
 * event:  [inEpisode, cause, …]      inEpisode is 1 or 0; the last causes are left out where they are 0
 *         [[inEpisode, lately, time], cause, …]     lately: 0, or for each lenient cause [of, outcomes], else 0
 *                                    time: of an event with members of time (`encodeTime`), or 0
 * cause:  0                          nothing is collected
 *         [of]                       none of so many outcomes agreed
 *         [of, outcomes, agreed]     agreed: the newest that did, by its number in the table
 *         [of, outcomes, agreed, baseline]     with none that agreed: [of, 0, -1, baseline]
 * outcomes: 1 where all agreed, else text of base64's characters, six outcomes each, the newest first
 * ```
 */
export function encodeRuntime(profile: Profile, runtime: Runtime, log?: number): string {
  const { puId, stId } = runtime;
  const purpose = profile.purposes.get(puId);
  const tables = { agreed: new AgreedTable(), events: new EventTable() };
  const local = encodeEvidence(purpose?.states.get(stId)?.events ?? [], runtime.local, tables);
  const global = encodeEvidence(purpose?.globalEvents ?? [], runtime.global, tables);
  const { agreed, events } = tables;
  const name = log === undefined ? '' : `"log":${log},`;
  return `{"v":2,${name}"puId":${puId},"stId":${stId},"agreed":[${agreed.texts.join()}],"events":[${events.texts.join()}],"local":{${local}},"global":{${global}}}`;
}

type Tables = { agreed: AgreedTable; events: EventTable };

/** Each once: causes that one measurement met have the same object. */
class AgreedTable {
  readonly texts: string[] = [];
  readonly #numbers = new Map<Agreed, number>();

  numberOf(agreed: Agreed): number {
    const known = this.#numbers.get(agreed);
    if (known !== undefined) return known;
    this.#numbers.set(agreed, this.texts.length);
    return this.texts.push(JSON.stringify([agreed.val, agreed.ts])) - 1;
  }
}

function encodeEvidence(live: LiveEvent[], evidence: Evidence, tables: Tables): string {
  let text = '';
  for (let index = 0; index < evidence.length; index++) {
    const [event, collected] = [live[index], evidence[index]];
    if (!event || !collected) continue;
    const number = tables.events.numberOf(event, collected, () =>
      encodeEvent(event, collected, tables.agreed),
    );
    text += text === '' ? `"${event.key}":${number}` : `,"${event.key}":${number}`;
  }
  return text;
}

function encodeEvent(event: LiveEvent, evidence: EventEvidence, agreed: AgreedTable): string {
  const { causes } = evidence;
  let text = `[${encodeEpisode(event, evidence)}`;
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

function encodeEpisode(event: LiveEvent, { isInEpisode, lately, time }: EventEvidence): string {
  const began = isInEpisode ? '1' : '0';
  const stored = time && encodeTime(time);
  if (!lately && !stored) return began;
  const windows = lately?.map((window, index) =>
    window ? encodeLately(window, event.causes[index]?.windowLength ?? 1) : '0',
  );
  return `[${began},${windows ? `[${windows.join()}]` : '0'},${JSON.stringify(stored ?? 0)}]`;
}

function encodeLately(window: CauseEvidence, windowLength: number): string {
  if (window.matched === 0) return `[${window.of}]`;
  const isAll = window.matched === window.of;
  return `[${window.of},${isAll ? '1' : `"${encodeOutcomes(window, windowLength)}"`}]`;
}

function encodeCause(collected: CauseEvidence, windowLength: number, agreed: AgreedTable): string {
  const { of, matched, baseline } = collected;
  if (matched === 0) return baseline === undefined ? `[${of}]` : `[${of},0,-1,${baseline}]`;
  const outcomes = matched === of ? '1' : `"${encodeOutcomes(collected, windowLength)}"`;
  const number = collected.agreed ? agreed.numberOf(collected.agreed) : -1;
  const end = baseline === undefined ? ']' : `,${baseline}]`;
  return `[${of},${outcomes},${number}${end}`;
}

function encodeOutcomes({ bits, words }: CauseEvidence, windowLength: number): string {
  return encodeWords(words ?? [bits], lettersOf(windowLength));
}
