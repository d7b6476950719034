import type { Profile } from './compile.ts';
import type { Measurement } from '../contract/measurement.ts';
import type { Place } from '../contract/place.ts';

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

/** Where a device stands when the profile becomes current, without any evidence. */
export function startRuntime(profile: Profile, _arrivedTs: number): Runtime {
  return { ...profile.first, local: noEvidence, global: noEvidence };
}

/**
 * The device says that it is in `place`: evidence of that state's causes starts anew, that of global states only
 * with another purpose.
 */
export function enter(
  _profile: Profile,
  runtime: Runtime,
  place: Place,
  _arrivedTs: number,
): Runtime {
  const { puId, stId } = place;
  const entersPurpose = puId !== runtime.puId;
  const global = entersPurpose ? noEvidence : runtime.global;
  return { puId, stId, local: noEvidence, global };
}

/** Whether the profile has such a state in such a purpose. */
export function hasPlace(profile: Profile, { puId, stId }: Place): boolean {
  return profile.purposes.get(puId)?.states.has(stId) === true;
}
