import type { CompiledCause, LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import { readOldEvent } from './read-old-runtime.ts';
import type { OldEvent } from './read-old-runtime.ts';
import { noEvidence } from './runtime.ts';
import type { Agreed, CauseEvidence, Evidence, EventEvidence, Runtime } from './runtime.ts';
import { decodeWords } from './stored-words.ts';
import { emptyWindow, holds, windowOf, wordsOf } from './window.ts';

type StoredCause = 0 | [of: number, outcomes?: 0 | 1 | string, agreed?: number, baseline?: number];
type StoredEvent = [rung: 0 | 1, ...causes: StoredCause[]];
type StoredEvidence = Record<string, StoredEvent | OldEvent>;

/** The JSON of a runtime, in any form in which it was ever stored: see `encodeRuntime`, and for 1 `OldEvent`. */
export type StoredRuntime = {
  v: 1 | 2;
  puId: number;
  stId: number;
  agreed?: [val: Agreed['val'], ts: number][];
  local: StoredEvidence;
  global: StoredEvidence;
};

/** The runtime that was stored. Evidence of events that the profile does not have is left out. */
export function readRuntime(profile: Profile, stored: StoredRuntime): Runtime {
  const { puId, stId } = stored;
  const purpose = profile.purposes.get(puId);
  const agreed = (stored.agreed ?? []).map(([val, ts]): Agreed => ({ val, ts }));
  return {
    puId,
    stId,
    local: readEvidence(purpose?.states.get(stId)?.events ?? [], stored.local, agreed),
    global: readEvidence(purpose?.globalEvents ?? [], stored.global, agreed),
  };
}

function readEvidence(events: LiveEvent[], stored: StoredEvidence, agreed: Agreed[]): Evidence {
  const evidence: (EventEvidence | null)[] = [];
  for (const [index, event] of events.entries()) {
    if (!Object.hasOwn(stored, event.key)) continue;
    const given = stored[event.key];
    const read = Array.isArray(given)
      ? readEvent(event, given, agreed)
      : given && readOldEvent(event, given);
    if (!read) continue;
    while (evidence.length < index) evidence.push(null);
    evidence.push(read);
  }
  return evidence.length > 0 ? evidence : noEvidence;
}

function readEvent(event: LiveEvent, [rung, ...stored]: StoredEvent, agreed: Agreed[]) {
  const causes = event.causes.map((cause, index) => readCause(cause, stored[index] ?? 0, agreed));
  const holding = event.causes.filter((cause, index) => holds(cause, causes[index])).length;
  return { causes, holding, rung: rung === 1 };
}

function readCause(
  cause: CompiledCause,
  stored: StoredCause,
  table: Agreed[],
): CauseEvidence | null {
  if (stored === 0) return null;
  const [of, outcomes = 0, agreed = -1, baseline] = stored;
  if (outcomes === 0) return { ...emptyWindow(baseline), of };
  const { windowLength } = cause;
  const words =
    outcomes === 1 ? wordsOf(windowLength, (age) => age < of) : decodeWords(outcomes, windowLength);
  return windowOf(cause, of, words, { agreed: table[agreed], baseline });
}
