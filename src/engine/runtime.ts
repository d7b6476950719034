import type { Profile } from './compile.ts';
import type { CompiledPurpose, CompiledState } from './compile-purpose.ts';
import type { LiveEvent } from './compile-event.ts';
import type { Measurement } from '../contract/measurement.ts';
import type { Place } from '../contract/place.ts';
import type { EventTime } from './time-evidence.ts';
import { noTime } from './time-evidence.ts';

/** A measurement that agreed. All causes that it met have this one object. */
export type Agreed = Readonly<Pick<Measurement, 'val' | 'ts'>>;

/**
 * What one cause has collected: the outcomes of its last measurements, and what a `relative` cause
 * measures from. The members are always all there, so that reading them is fast.
 */
export type CauseEvidence = {
  /** How many outcomes the window holds, and how many of them agreed. */
  of: number;
  matched: number;
  /** A short window: a bit an outcome, 1 for agreed, the newest lowest. 0 where `words` has them. */
  bits: number;
  /** A long one, 30 outcomes a word, the newest in the first; null while none of them agreed. */
  words: number[] | null;
  /** While it is worked on (`Draft`): how many of the newest are in `bits` and not yet in `words`. Else 0. */
  ahead: number;
  /** Of these the word whose outcomes leave the window as others come, the next one highest. Else 0. */
  leaving: number;
  baseline: number | undefined;
  /** The newest that agreed, while the window holds one. */
  agreed: Agreed | undefined;
};

/** `holding`: how many of the causes hold. `isInEpisode`: it has fired, and no cause has disagreed since. */
export type EventEvidence = {
  causes: (CauseEvidence | null)[];
  holding: number;
  isInEpisode: boolean;
  /** The last outcomes of each lenient cause since the episode began (`episode.ts`); null where there are none. */
  lately: (CauseEvidence | null)[] | null;
  /** Of an event with members of time; else null. */
  time: EventTime | null;
};

/** By the `index` of the event; null, or beyond the end, where nothing is collected. */
export type Evidence = readonly (EventEvidence | null)[];

/**
 * Where a device stands and the evidence its causes have collected. Never changed: what follows it is
 * another one, which shares with it what is the same. `encodeRuntime` gives the form it is stored in.
 */
export type Runtime = Readonly<Place> & {
  /** Evidence of the current state's events; of global states' events in `global`. */
  readonly local: Evidence;
  readonly global: Evidence;
};

export const noEvidence: Evidence = [];

/** Where a device stands when the profile becomes current: no evidence, but that silences begin. */
export function startRuntime(profile: Profile, arrivedTs: number): Runtime {
  const purpose = profile.purposes.get(profile.first.puId);
  const state = purpose?.states.get(profile.first.stId);
  const [local, global] = [enteredState(state, arrivedTs), enteredPurpose(purpose, arrivedTs)];
  return { ...profile.first, local, global };
}

/**
 * The device says that it is in `place`: evidence of that state's causes starts anew, that of global states only
 * with another purpose. The very same runtime, where it is there already.
 */
export function enter(
  profile: Profile,
  runtime: Runtime,
  { puId, stId }: Place,
  arrivedTs: number,
): Runtime {
  if (puId === runtime.puId && stId === runtime.stId) return runtime;
  const purpose = profile.purposes.get(puId);
  const local = enteredState(purpose?.states.get(stId), arrivedTs);
  const global = puId === runtime.puId ? runtime.global : enteredPurpose(purpose, arrivedTs);
  return { puId, stId, local, global };
}

/** Evidence of a state's own events when it is entered from another one. */
export function enteredState(state: CompiledState | undefined, arrivedTs: number): Evidence {
  return state && !state.isGlobal ? begun(state.timed.withSilences, arrivedTs) : noEvidence;
}

/** Evidence of all global states when their purpose is entered from another one. */
export function enteredPurpose(purpose: CompiledPurpose | undefined, arrivedTs: number): Evidence {
  return purpose ? begun(purpose.globalTimed.withSilences, arrivedTs) : noEvidence;
}

function begun(withSilences: LiveEvent[], arrivedTs: number): Evidence {
  if (withSilences.length === 0) return noEvidence;
  const evidence: (EventEvidence | null)[] = [];
  for (const event of withSilences) {
    while (evidence.length < event.index) evidence.push(null);
    const causes = event.causes.map(({ time }) =>
      time?.noneForMs ? { ...noTime, silence: { sinceTs: arrivedTs, completeTs: null } } : null,
    );
    evidence.push({ ...noEventEvidence(event), time: { newestT: null, causes } });
  }
  return evidence;
}

/** What an event has collected before its first measurement. */
export function noEventEvidence({ causes, isTimed }: LiveEvent): EventEvidence {
  const none = causes.map(() => null);
  const time = isTimed ? { newestT: null, causes: none } : null;
  return { causes: none.slice(), holding: 0, isInEpisode: false, lately: null, time };
}

/** Whether the profile has such a state in such a purpose. */
export function hasPlace(profile: Profile, { puId, stId }: Place): boolean {
  return profile.purposes.get(puId)?.states.has(stId) === true;
}
