import type { LiveEvent } from './compile-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import type { Profile } from './compile.ts';
import { readOldEvent } from './read-runtime-v1.ts';
import type { OldEvent } from './read-runtime-v1.ts';
import { noEvidence } from './runtime.ts';
import type { Agreed, CauseEvidence, Evidence, EventEvidence, Runtime } from './runtime.ts';
import { decodeWords } from './encode-words.ts';
import { decodeTime } from './encode-time.ts';
import type { StoredTime } from './encode-time.ts';
import { withTime } from './time-kept.ts';
import { disagreed, emptyWindow, holds, windowOf } from './window.ts';
import { wordsOfWindow } from './words.ts';

type StoredCause = 0 | [of: number, outcomes?: 0 | 1 | string, agreed?: number, baseline?: number];
type StoredLately = 0 | (0 | [of: number, outcomes?: 0 | 1 | string])[];
type StoredEpisode = 0 | 1 | [inEpisode: 0 | 1, lately: StoredLately, time: 0 | StoredTime];
type StoredEvent = [episode: StoredEpisode, ...causes: StoredCause[]];
type StoredEvidence = Record<string, number | OldEvent>;

/** The JSON of a runtime, in any form in which it was ever stored: see `encodeRuntime`, and for 1 `OldEvent`. */
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

/** The runtime that was stored. Evidence of events that the profile does not have is left out. */
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

type Tables = { agreed: Agreed[]; events: StoredEvent[] };

function readEvidence(live: LiveEvent[], stored: StoredEvidence, tables: Tables): Evidence {
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
  const causes = event.causes.map((cause, index) => readCause(cause, stored[index] ?? 0, agreed));
  const [began, lately, time] =
    typeof episode === 'number' ? [episode, 0 as const, 0 as const] : episode;
  const isInEpisode = began === 1;
  const read = { causes, isInEpisode, lately: readLately(event, lately), time: null, holding: 0 };
  if (event.isTimed)
    return withTime(event, read, decodeTime(time === 0 ? null : time, causes.length));
  read.holding = event.causes.filter((cause, index) => holds(cause, causes[index])).length;
  return read;
}

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
  // The outcomes of a run are counted only.
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
  return windowOf(cause, of, words, { agreed, baseline });
}
