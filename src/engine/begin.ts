import type { Began, CompiledCause, KeepsBegin, LiveEvent } from './compile.ts';
import type { Begun, CauseEvidence, CauseTime, EventEvidence } from './runtime.ts';

// Since when does what an event fires for hold? A firing needs the first measurement of the run that led to it. Causes
// keep it beside their windows; the form that is stored is one that earlier versions ignore.

export const notBegun: Begun = [];

/** The begin of a cause after an outcome. `before`: how many agreed before it; `window`: after it. */
export function begunAfter(
  keeps: KeepsBegin,
  window: Pick<CauseEvidence, 'begun' | 'matched'>,
  before: number,
  agreed: Began | null,
): Begun {
  const { begun, matched } = window;
  if (matched === 0 || (keeps === 'first' && !agreed)) return notBegun;
  if (keeps === 'first')
    return begun === null || begun.length > 0 || !agreed ? begun : pair(agreed);
  if (begun === null) return agreed && matched === 1 ? pair(agreed) : null;
  const left = before + (agreed ? 1 : 0) - matched;
  const kept = left > 0 ? begun.slice(2 * left) : begun;
  return agreed ? [...kept, ...pair(agreed)] : kept;
}

/** The newest that agreed of what a cause keeps, once older ones have left its window. */
export const newestBegun = (begun: Begun, matched: number): Begun =>
  begun && begun.slice(Math.max(0, begun.length - 2 * matched));

export const pair = ({ ts, arrivedTs }: Began): readonly number[] => [ts, arrivedTs ?? Number.NaN];

/**
 * Since when an event holds that fires at `at`: the latest begin of the causes of these indexes. Null: not known of one
 * of them. A silence begins when it began to be counted.
 */
export function beganOf(
  { causes }: LiveEvent,
  evidence: EventEvidence,
  { at, firing }: { at: Began; firing: readonly number[] },
): Began | null {
  let latest: Began | null = null;
  for (const index of firing) {
    const cause = causes[index] as CompiledCause;
    const began = beganOfCause(cause, evidence, index) ?? (isAtOnce(cause) ? at : null);
    if (began === null) return null;
    if (latest === null || began.ts > latest.ts) latest = began;
  }
  return latest && latest.ts > at.ts ? { ...latest, ts: at.ts } : latest;
}

/** Nothing is kept of a window of one outcome only where all are: the firing's measurement completes it. */
const isAtOnce = ({ keepsBegin: keeps, windowLength, time }: CompiledCause) =>
  keeps === null && windowLength === 1 && time === null;

function beganOfCause(
  { keepsBegin: keeps }: CompiledCause,
  { causes, time }: EventEvidence,
  index: number,
): Began | null {
  const timed: CauseTime | null = time?.causes[index] ?? null;
  if (timed?.silence) return { ts: timed.silence.sinceTs, arrivedTs: timed.silence.sinceTs };
  const [ts, arrivedTs] = keeps === null ? [] : (causes[index]?.begun ?? []);
  if (ts === undefined || arrivedTs === undefined)
    return timed?.run ? { ts: timed.run.sinceT, arrivedTs: null } : null;
  return { ts, arrivedTs: Number.isNaN(arrivedTs) ? null : arrivedTs };
}

/** As it is stored: the first `ts` and how late it came, then differences; null for an arrival that is not known. */
export type StoredBegun = (number | null)[];

export function encodeBegun(begun: readonly number[]): StoredBegun {
  return begun.map((number, index) => {
    if (index % 2 === 0) return number - (begun[index - 2] ?? 0);
    return Number.isNaN(number) ? null : number - (begun[index - 1] ?? 0);
  });
}

export function decodeBegun(stored: StoredBegun): readonly number[] {
  const begun: number[] = [];
  for (const [index, number] of stored.entries()) {
    if (index % 2 === 0) begun.push((number ?? 0) + (begun[index - 2] ?? 0));
    else begun.push(number === null ? Number.NaN : number + (begun[index - 1] ?? 0));
  }
  return begun;
}
