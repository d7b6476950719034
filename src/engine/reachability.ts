import type { LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import type { CompiledPurpose } from './compile-purpose.ts';
import type { Place } from '../contract/place.ts';

/** Which purposes and states some chain of moves leads to, as far as the profile's own events move. */
export type Reachable = { purposes: ReadonlySet<number>; states: ReadonlySet<string> };

export function placeKey({ puId, stId }: Place): string {
  return `${puId}/${stId}`;
}

/**
 * Follows every move from the profile's first state. A purpose that nothing leads to is followed from
 * its initial state too, so that its own states are not all said to be lost with it.
 */
export function reach(profile: Profile): Reachable {
  const purposes = new Set<number>();
  const states = new Set<string>();
  follow(profile, profile.first, purposes, states);
  const reachedPurposes = new Set(purposes);
  for (const { puId, initStId } of profile.purposes.values()) {
    if (!purposes.has(puId)) follow(profile, { puId, stId: initStId }, purposes, states);
  }
  return { purposes: reachedPurposes, states };
}

function follow(profile: Profile, start: Place, purposes: Set<number>, states: Set<string>): void {
  const waiting = [start];
  for (let place = waiting.pop(); place; place = waiting.pop()) {
    const purpose = profile.purposes.get(place.puId);
    if (!purpose || states.has(placeKey(place))) continue;
    states.add(placeKey(place));
    const global = purposes.has(place.puId) ? [] : purpose.globalEvents;
    purposes.add(place.puId);
    waiting.push(...targetsOf([...global, ...eventsOf(purpose, place)]));
  }
}

function eventsOf(purpose: CompiledPurpose, { stId }: Place): LiveEvent[] {
  return purpose.states.get(stId)?.events ?? [];
}

function targetsOf(events: LiveEvent[]): Place[] {
  return events.flatMap(({ target }) => (target ? [target.place] : []));
}
