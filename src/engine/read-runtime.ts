import type { CompiledCause, LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import { readOldEvent } from './read-runtime-v1.ts';
import type { OldEvent } from './read-runtime-v1.ts';
import { noEvidence } from './runtime.ts';
import type { Agreed, CauseEvidence, Evidence, EventEvidence, Runtime } from './runtime.ts';
import { decodeWords } from './encode-words.ts';
import { disagreed, holds, windowOf, wordsOfWindow } from './window.ts';

type StoredCause = 0 | [of: number, outcomes?: 0 | 1 | string, agreed?: number, baseline?: number];
type StoredEvent = [inEpisode: 0 | 1, ...causes: StoredCause[]];
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
  const [inEpisode, ...stored] = given;
  const causes = event.causes.map((cause, index) => readCause(cause, stored[index] ?? 0, agreed));
  const holding = event.causes.filter((cause, index) => holds(cause, causes[index])).length;
  return { causes, holding, isInEpisode: inEpisode === 1 };
}

function readCause(
  cause: CompiledCause,
  stored: StoredCause,
  table: Agreed[],
): CauseEvidence | null {
  if (stored === 0) return null;
  const [of, outcomes = 0, agreed = -1, baseline] = stored;
  if (outcomes === 0) return disagreed(cause, of, baseline);
  const { windowLength } = cause;
  const words =
    outcomes === 1
      ? wordsOfWindow(windowLength, (age) => age < of)
      : decodeWords(outcomes, windowLength);
  return windowOf(cause, of, words, { agreed: table[agreed], baseline });
}
