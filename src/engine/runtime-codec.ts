import { z } from 'zod';
import type { Measurement } from '../contract/values.ts';
import { type Bins, haveMore, noWords, wordBits, wordsOfWindow } from './arithmetic.ts';
import { decodeBegun, encodeBegun, notBegun, type StoredBegun } from './begin.ts';
import type { CompiledCause, LiveEvent, Profile } from './compile.ts';
import { Evaluator } from './evaluator.ts';
import {
  type Agreed,
  type CauseEvidence,
  type CauseTime,
  type EventEvidence,
  type EventTime,
  type Evidence,
  noEventEvidence,
  noEvidence,
  type Runtime,
  type TimedOutcome,
} from './runtime.ts';
import { withTime } from './timed.ts';
import { disagreed, emptyWindow, groupsOf, holds, windowOf } from './evidence.ts';

type StoredCause = 0 | [of: number, outcomes?: 0 | 1 | string, agreed?: number, baseline?: number];
type StoredLately = 0 | (0 | [of: number, outcomes?: 0 | 1 | string])[];
/** `episode`: as in `EventEvidence`; without `anyOf` 0 or 1. */
type StoredEpisode =
  | number
  | [episode: number, lately: StoredLately, time: 0 | StoredTime, begun?: (0 | StoredBegun)[]];
type StoredEvent = [episode: StoredEpisode, ...causes: StoredCause[]];
type StoredEvidence = Record<string, number | OldEvent>;

/** The JSON of a runtime, in every form that was ever stored: see `encodeRuntime`; for version 1, `OldEvent`. */
export type StoredRuntime = {
  v: 1 | 2;
  log?: number;
  puId: number;
  stId: number;
  agreed?: [val: Agreed['val'], ts: number][];
  events?: StoredEvent[];
  local: StoredEvidence;
  global: StoredEvidence;
};

/** Reads a stored runtime. Evidence of events that the profile does not have is dropped. */
export function readRuntime(profile: Profile, stored: StoredRuntime): Runtime {
  const { puId, stId } = stored;
  const purpose = profile.purposes.get(puId);
  const tables = {
    agreed: (stored.agreed ?? []).map(([val, ts]): Agreed => ({ val, ts })),
    events: stored.events ?? [],
  };
  return {
    puId,
    stId,
    local: readEvidence(purpose?.states.get(stId)?.events ?? [], stored.local, tables),
    global: readEvidence(purpose?.globalEvents ?? [], stored.global, tables),
  };
}

type ReadTables = { agreed: Agreed[]; events: StoredEvent[] };

function readEvidence(live: LiveEvent[], stored: StoredEvidence, tables: ReadTables): Evidence {
  const evidence: (EventEvidence | null)[] = [];
  for (const [index, event] of live.entries()) {
    if (!Object.hasOwn(stored, event.key)) continue;
    const given = stored[event.key] ?? -1;
    const read =
      typeof given === 'number'
        ? readEvent(event, tables.events[given], tables.agreed)
        : readOldEvent(event, given);
    if (!read) continue;
    while (evidence.length < index) evidence.push(null);
    evidence.push(read);
  }
  return evidence.length > 0 ? evidence : noEvidence;
}

function readEvent(
  event: LiveEvent,
  given: StoredEvent | undefined,
  agreed: Agreed[],
): EventEvidence | null {
  if (!given) return null;
  const [episode, ...stored] = given;
  const [began, lately, time, begun = []] =
    typeof episode === 'number' ? [episode, 0 as const, 0 as const] : episode;
  const causes = event.causes.map((cause, index) => {
    const window = readCause(cause, stored[index] ?? 0, agreed);
    return window && withBegun(cause, window, begun[index] ?? 0);
  });
  const read = {
    causes,
    episode: began,
    lately: readLately(event, lately),
    time: null,
    holding: 0,
  };
  if (event.isTimed)
    return withTime(event, read, decodeTime(time === 0 ? null : time, event.causes));
  read.holding = holdingOf(event, causes);
  return read;
}

/** An earlier version, or none, stored no begin of a window in which it would be kept: it is not known. */
function withBegun(
  { keepsBegin: keeps }: CompiledCause,
  window: CauseEvidence,
  stored: 0 | StoredBegun,
): CauseEvidence {
  if (keeps === null || window.matched === 0) return window;
  if (stored !== 0) return { ...window, begun: decodeBegun(stored) };
  const newest = (window.words?.[0] ?? window.bits) & 1;
  const isUnknown = keeps === 'each' || newest === 1 || window.matched === window.of;
  return isUnknown ? { ...window, begun: null } : window;
}

/** Of an event without time members. */
const holdingOf = (
  { causes, groups }: LiveEvent,
  collected: readonly (CauseEvidence | null)[],
): number =>
  groups
    ? groupsOf(groups, (at) => holds(causes[at] as CompiledCause, collected[at]))
    : causes.filter((cause, index) => holds(cause, collected[index])).length;

function readLately({ causes }: LiveEvent, stored: StoredLately): EventEvidence['lately'] {
  if (stored === 0) return null;
  return causes.map((cause, index) => {
    const window = stored[index] ?? 0;
    return window === 0 ? null : readWindow(cause, window[0], window[1] ?? 0, {});
  });
}

function readCause(
  cause: CompiledCause,
  stored: StoredCause,
  table: Agreed[],
): CauseEvidence | null {
  if (stored === 0) return null;
  const [of, outcomes = 0, agreed = -1, baseline] = stored;
  // A run only counts its outcomes.
  if (cause.time?.forMs)
    return { ...emptyWindow(baseline), of, matched: of, agreed: table[agreed] };
  return readWindow(cause, of, outcomes, { agreed: table[agreed], baseline });
}

function readWindow(
  cause: CompiledCause,
  of: number,
  outcomes: 0 | 1 | string,
  { agreed, baseline }: Partial<Pick<CauseEvidence, 'agreed' | 'baseline'>>,
): CauseEvidence {
  if (outcomes === 0) return disagreed(cause, of, baseline);
  const { windowLength } = cause;
  const words =
    outcomes === 1
      ? wordsOfWindow(windowLength, (age) => age < of)
      : decodeWords(outcomes, windowLength);
  return windowOf(cause, of, words, { agreed, baseline, begun: notBegun });
}

/**
 * What version 0.1 stored for a cause. Its window is text, 1 for an outcome that agreed and 0 for another, the newest
 * last. For a position `val` is 1 or 0, with `lat` and `long` beside it.
 */
type OldCause = {
  window: string;
  baseline?: number;
  agreed?: { val: number; ts: number; lat?: number; long?: number };
};

type OldEvent = { causes: (OldCause | null)[]; rung?: true };

/** Null if nothing was collected. */
function readOldEvent(event: LiveEvent, old: OldEvent): EventEvidence | null {
  const causes = event.causes.map((cause, index) => readOldCause(cause, old.causes[index] ?? null));
  const rung = old.rung === true ? 1 : 0;
  if (rung === 0 && causes.every((collected) => collected === null)) return null;
  const holding = holdingOf(event, causes);
  const { time } = noEventEvidence(event);
  return { causes, holding, episode: rung, lately: null, time };
}

function readOldCause(cause: CompiledCause, old: OldCause | null): CauseEvidence | null {
  if (!old) return null;
  const { window, baseline } = old;
  const newest = window.length - 1;
  const words = wordsOfWindow(cause.windowLength, (age) => window[newest - age] === '1');
  const kept = { agreed: agreedOf(old), baseline, begun: notBegun };
  return withBegun(cause, windowOf(cause, window.length, words, kept), 0);
}

function agreedOf({ agreed }: OldCause): Agreed | undefined {
  if (!agreed) return undefined;
  const { val, ts, lat, long } = agreed;
  return { val: lat === undefined || long === undefined ? val : { lat, long }, ts };
}

/** What `encodeTime` writes for an event: the newest time, and each cause's evidence; 0 if it has none. */
type StoredTime = [newestT: number | null, ...causes: (0 | StoredCauseTime)[]];

type StoredBin = [
  at: number,
  sum: number,
  count: number,
  first: number,
  last: number,
  ...more: number[],
];

type StoredCauseTime = [
  lastT: number | null,
  agreedT: number | null,
  compared: number | null,
  run: 0 | [sinceT: number, newestT: number, ageMs: number, isComplete: 0 | 1, ...due: number[]],
  silence: 0 | [sinceTs: number, completeTs: number | null],
  bins: 0 | [sinceT: number, ...list: StoredBin[]],
  outcomeTs: 0 | number[],
  lately: 0 | [t: number, agrees: 0 | 1][],
];

/** Null if there is nothing to write. */
function encodeTime({ newestT, causes }: EventTime): StoredTime | null {
  if (newestT === null && causes.every((time) => time === null)) return null;
  return [newestT, ...causes.map((time) => (time ? encodeCauseTime(time) : 0))];
}

/** `live`: the event's causes. `stored`: null if nothing was written. */
function decodeTime(stored: StoredTime | null, live: readonly CompiledCause[]): EventTime {
  const [newestT, ...causes] = stored ?? [null];
  const decoded = live.map((cause, index) => {
    const given = causes[index] ?? 0;
    return given === 0 ? null : decodeCause(cause, given);
  });
  return { newestT, causes: decoded };
}

function encodeCauseTime(time: CauseTime): StoredCauseTime {
  const { lastT, agreedT, compared = null, run, silence, bins, outcomeTs, lately } = time;
  return [
    lastT,
    agreedT,
    compared,
    run
      ? [
          run.sinceT,
          run.newestT,
          run.newestAgeMs,
          run.isComplete ? 1 : 0,
          ...(run.due ? [run.due.t, run.due.ts] : []),
        ]
      : 0,
    silence ? [silence.sinceTs, silence.completeTs] : 0,
    bins
      ? [
          bins.sinceT,
          ...bins.list.map(({ at, sum, count, first, last, more }): StoredBin => {
            return [at, sum, count, first, last, ...more];
          }),
        ]
      : 0,
    outcomeTs ? differences(outcomeTs) : 0,
    lately ? lately.map(({ t, agrees }) => [t, agrees ? 1 : 0]) : 0,
  ];
}

function decodeCause({ time }: CompiledCause, stored: StoredCauseTime): CauseTime {
  const [lastT, agreedT, compared, run, silence, storedBins, outcomeTs, lately] = stored;
  const bins = storedBins === 0 ? null : decodeBins(storedBins);
  const areWhole = bins !== null && time?.over && haveMore(bins, time.over);
  return {
    lastT,
    agreedT,
    compared: compared ?? undefined,
    run: run === 0 ? null : decodeRun(run),
    silence: silence === 0 ? null : { sinceTs: silence[0], completeTs: silence[1] },
    bins: areWhole ? bins : null,
    outcomeTs: outcomeTs === 0 ? null : sums(outcomeTs),
    lately:
      lately === 0
        ? null
        : lately.map(([t, agrees]): TimedOutcome => ({ t, agrees: agrees === 1 })),
  };
}

function decodeRun([sinceT, newestT, newestAgeMs, complete, t, ts]: Exclude<
  StoredCauseTime[3],
  0
>): CauseTime['run'] {
  const due = t === undefined || ts === undefined ? null : { t, ts };
  return { sinceT, newestT, newestAgeMs, due, isComplete: complete === 1 };
}

function decodeBins([sinceT, ...list]: Exclude<StoredCauseTime[5], 0>): Bins {
  const bins = list.map(([at, sum, count, first, last, ...more]) => {
    return { at, sum, count, first, last, more };
  });
  return { sinceT, list: bins };
}

/** The first number, then each one's difference from its predecessor. */
function differences(numbers: readonly number[]): number[] {
  return numbers.map((number, index) => number - (numbers[index - 1] ?? 0));
}

function sums(given: readonly number[]): number[] {
  let sum = 0;
  return given.map((difference) => (sum += difference));
}

/** Six outcomes a character, as in base64. */
const letterBits = 6;
const mask = 2 ** letterBits - 1;
const lettersPerWord = wordBits / letterBits;
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const codes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
const values = new Map([...codes].map((code, value) => [code, value]));
/** Indexed by character code. */
const valueOf = Uint8Array.from({ length: 128 }, (_, code) => values.get(code) ?? 0);

/** How many characters that many outcomes take. */
function lettersOf(outcomes: number): number {
  return Math.ceil(outcomes / letterBits);
}

/** Reused for each text. Made when it is needed: the console's page has no Buffer, and encodes nothing. */
let scratch: Buffer | null = null;

/** The first `count` characters of a window's words as text, beginning with the lowest bits of the first word. */
function encodeWords(words: number[], count: number): string {
  const length = words.length * lettersPerWord;
  if (scratch === null || scratch.length < length) scratch = Buffer.alloc(2 * length);
  const text = scratch;
  for (let index = 0, at = 0; index < words.length; index++, at += lettersPerWord) {
    const word = words[index] as number;
    text[at] = codes[word & mask] as number;
    text[at + 1] = codes[(word >> letterBits) & mask] as number;
    text[at + 2] = codes[(word >> (2 * letterBits)) & mask] as number;
    text[at + 3] = codes[(word >> (3 * letterBits)) & mask] as number;
    text[at + 4] = codes[(word >> (4 * letterBits)) & mask] as number;
  }
  return text.toString('latin1', 0, count);
}

/** The words that such a text encodes. Characters after its end, or outside the alphabet, count as zeros. */
function decodeWords(text: string, windowLength: number): number[] {
  const words = noWords(windowLength);
  for (let index = 0, at = 0; index < words.length; index++) {
    let word = 0;
    for (let bits = 0; bits < wordBits; bits += letterBits) {
      word |= (valueOf[text.charCodeAt(at++)] ?? 0) << bits;
    }
    words[index] = word;
  }
  return words;
}

/**
 * Encodes a runtime as JSON for storage. It is short, because any change writes all of it: it omits what causes have
 * not collected, and has tables for measurements that agreed and for whole events, because many share them.
 *
 * ```text
 * { v: 2, log: number, puId, stId, agreed: [[val, ts], …], events: [event, …], local: { "stId/evId": number },
 *   global: { … } }
 * log:    rows of `evidence_log` with this base contain what was added since; absent: nothing was
 * number: the index of the event's evidence in `events`
 * event:  [inEpisode, cause, …]      inEpisode is 1 or 0; trailing causes that are 0 are omitted
 *         [[inEpisode, lately, time, begun], cause, …]
 *                                    lately: 0, or for each lenient cause [of, outcomes], for others 0
 *                                    time: for an event with time members (`encodeTime`), or 0
 *                                    begun: absent, or for each cause what its begin is read from, or 0
 * cause:  0                          nothing is collected
 *         [of]                       that many outcomes, none of which agreed
 *         [of, outcomes, agreed]     agreed: the index of the newest that agreed
 *         [of, outcomes, agreed, baseline]     if none agreed: [of, 0, -1, baseline]
 * outcomes: 1 if all agreed, otherwise text in base64's characters, six outcomes each, the newest first
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

type WrittenTables = { agreed: AgreedTable; events: EventTable };

/** Writes each object once. Causes that one measurement met share one object. */
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

function encodeEvidence(live: LiveEvent[], evidence: Evidence, tables: WrittenTables): string {
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
    text += `${skipped},${encodeCauseEvidence(collected, event.causes[index]?.windowLength ?? 1, agreed)}`;
    skipped = '';
  }
  return `${text}]`;
}

function encodeEpisode(event: LiveEvent, evidence: EventEvidence): string {
  const { episode, lately, time, causes } = evidence;
  const began = String(episode);
  const stored = time && encodeTime(time);
  const begun = causes.some((cause) => cause?.begun?.length)
    ? `,${JSON.stringify(causes.map((cause) => (cause?.begun?.length ? encodeBegun(cause.begun) : 0)))}`
    : '';
  if (!lately && !stored && begun === '') return began;
  const windows = lately?.map((window, index) =>
    window ? encodeLately(window, event.causes[index]?.windowLength ?? 1) : '0',
  );
  return `[${began},${windows ? `[${windows.join()}]` : '0'},${JSON.stringify(stored ?? 0)}${begun}]`;
}

function encodeLately(window: CauseEvidence, windowLength: number): string {
  if (window.matched === 0) return `[${window.of}]`;
  const isAll = window.matched === window.of;
  return `[${window.of},${isAll ? '1' : `"${encodeOutcomes(window, windowLength)}"`}]`;
}

function encodeCauseEvidence(
  collected: CauseEvidence,
  windowLength: number,
  agreed: AgreedTable,
): string {
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

type Known = { event: LiveEvent; evidence: EventEvidence; number: number };

/**
 * Writes each event's evidence once. It finds equal evidence before writing it as text, because comparing windows
 * takes a fraction of the time that writing them takes.
 */
class EventTable {
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

/** Hashes what differs most often. Causes without evidence do not count, as in the text. */
function hashOf({ causes, episode }: EventEvidence): number {
  let hash = episode;
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
  if (evidence.episode !== given.episode) return false;
  if (evidence.lately !== given.lately || evidence.time !== given.time) return false;
  const count = Math.max(evidence.causes.length, given.causes.length);
  for (let index = 0; index < count; index++) {
    const [one, alike] = [evidence.causes[index] ?? null, given.causes[index] ?? null];
    if (!haveSame(one, alike)) return false;
    // The outcomes' text is as long as the window allows, unless all or none of them agreed.
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
    haveSameNumbers(one.begun, other.begun) &&
    Object.is(one.baseline, other.baseline) &&
    haveSameNumbers(one.words, other.words)
  );
}

function haveSameNumbers(one: readonly number[] | null, other: readonly number[] | null): boolean {
  if (one === other) return true;
  if (!one || !other || one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) {
    if (!Object.is(one[index], other[index])) return false;
  }
  return true;
}

/** Measurements by sense: its name, the first time, and for each measurement the time since the last and its value. */
const Runs = z.array(z.tuple([z.string(), z.number(), z.array(z.unknown())]));

/**
 * Encodes measurements in the order of their evaluation as short JSON. A value is a number or `[lat, long]`. What
 * `decodeMeasurements` reads back evaluates to the same, bit by bit.
 */
export function encodeMeasurements(measurements: Measurement[]): string {
  let text = '';
  let sense: string | null = null;
  let last = 0;
  for (const { sId, val, ts } of measurements) {
    if (sId === sense) text += `,${ts - last},`;
    else {
      text += `${text === '' ? '[' : ']],['}${JSON.stringify(sId)},${ts},[0,`;
      sense = sId;
    }
    last = ts;
    text += typeof val === 'number' ? String(val + 0) : `[${val.lat + 0},${val.long + 0}]`;
  }
  return text === '' ? '[]' : `[${text}]]]`;
}

/** Throws on text that `encodeMeasurements` did not write. */
export function decodeMeasurements(text: string): Measurement[] {
  const measurements: Measurement[] = [];
  for (const [sId, first, list] of Runs.parse(JSON.parse(text))) {
    let ts = first;
    for (let at = 0; at + 1 < list.length; at += 2) {
      ts += list[at] as number;
      measurements.push({ sId, val: toVal(list[at + 1]), ts });
    }
  }
  return measurements;
}

function toVal(given: unknown): Measurement['val'] {
  if (!Array.isArray(given)) return given as number;
  const [lat, long] = given as [number, number];
  return { lat, long };
}

/** What was added to evidence after it was stored as a whole: measurements from `encodeMeasurements`. */
export type StoredLog = { base: number; measurements: string };

/** The cost, as in `Evaluator`, after which the event loop may do other work: about a millisecond. */
const costAtOnce = 50_000;

/**
 * Restores a stored runtime exactly: reads it and evaluates again what was added since. Ignores rows of another base.
 * Awaits `yieldToEventLoop` now and then.
 */
export async function replay(
  profile: Profile,
  stored: StoredRuntime,
  rows: StoredLog[],
  yieldToEventLoop: () => Promise<unknown>,
): Promise<Runtime> {
  const whole = readRuntime(profile, stored);
  const added = addedTo(stored, rows);
  if (added.length === 0) return whole;
  const evaluator = new Evaluator(profile, whole);
  let until = costAtOnce;
  for (const { measurements } of added) {
    for (const measurement of decodeMeasurements(measurements)) {
      // Profiles with time members, which depend on the time of arrival, have no log.
      evaluator.measure(measurement, { t: measurement.ts, arrivedTs: Number.NaN }, false);
      if (evaluator.cost < until) continue;
      await yieldToEventLoop();
      until = evaluator.cost + costAtOnce;
    }
  }
  return evaluator.end();
}

/** The rows that belong to the stored runtime. */
export function addedTo({ log }: StoredRuntime, rows: StoredLog[]): StoredLog[] {
  return log === undefined ? [] : rows.filter(({ base }) => base === log);
}
