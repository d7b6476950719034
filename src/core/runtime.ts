import type { Profile } from './compile.ts';
import type { CauseSense } from './event.ts';
import type { Place } from './place.ts';

/** The newest measurement that agreed, and the number that was compared. */
export type Agreed = Omit<CauseSense, 'sId'> & { compared?: number };

/**
 * What one cause has collected: the outcomes of its last measurements (`1` agreed, `0` did not, the
 * newest last), and what a `relative` cause measures from.
 */
export type CauseEvidence = { window: string; baseline?: number; agreed?: Agreed };

/** `rung`: this episode has rung already. */
export type EventEvidence = { causes: (CauseEvidence | null)[]; rung?: true };

export type Evidence = Record<string, EventEvidence>;

/**
 * Where a device stands and the evidence its causes have collected: plain JSON, kept with the
 * device whenever it changes. `v` is the version of this form.
 */
export type Runtime = Place & {
  v: 1;
  /** Evidence of the current state's events, by `stId/evId`; of global states' events in `global`. */
  local: Evidence;
  global: Evidence;
};

/** Where a device stands when the profile becomes current, without any evidence. */
export function startRuntime(profile: Profile): Runtime {
  return { v: 1, ...profile.first, local: {}, global: {} };
}

/**
 * The device is in `place` from now on: evidence of that state's causes starts anew, that of global
 * states only with another purpose (`entersPurpose` says so where a firing names the same one).
 */
export function enter(
  _profile: Profile,
  runtime: Runtime,
  place: Place,
  entersPurpose: boolean = place.puId !== runtime.puId,
): Runtime {
  const { puId, stId } = place;
  const global = entersPurpose ? {} : runtime.global;
  return { v: 1, puId, stId, local: {}, global };
}

/** Whether the profile has such a state in such a purpose. */
export function hasPlace(profile: Profile, { puId, stId }: Place): boolean {
  return profile.purposes.get(puId)?.states.has(stId) === true;
}
