import type { Profile } from './compile.ts';
import type { CompiledPurpose, CompiledState } from './compile-purpose.ts';
import { readersOf } from './readers.ts';
import type { LiveEvent } from './compile-event.ts';
import { timedOf } from './timed.ts';

const known = new WeakMap<Profile['purposes'], Profile['purposes'] | null>();

/**
 * What the service evaluates of a profile that the device evaluates itself: events all of whose causes are
 * silences, which no device can report. They move nothing. Null where there are none. A runtime of one is a
 * runtime of the other.
 */
export function watchedOf(profile: Profile): Profile | null {
  if (!profile.isTimed) return null;
  let purposes = known.get(profile.purposes);
  if (purposes === undefined) {
    purposes = watchedPurposes(profile.purposes);
    known.set(profile.purposes, purposes);
  }
  return purposes && { ...profile, purposes };
}

function watchedPurposes(purposes: Profile['purposes']): Profile['purposes'] | null {
  const watched = new Map([...purposes].map(([puId, purpose]) => [puId, watchedPurpose(purpose)]));
  const isAny = [...watched.values()].some(({ states }) =>
    [...states.values()].some(({ events }) => events.length > 0),
  );
  return isAny ? watched : null;
}

function watchedPurpose(purpose: CompiledPurpose): CompiledPurpose {
  const states = new Map(
    [...purpose.states].map(([stId, state]) => [stId, watchedState(state)] as const),
  );
  const globalEvents = watchedEvents(purpose.globalEvents);
  return {
    ...purpose,
    states,
    globalEvents,
    globalReaders: readersOf(globalEvents),
    globalTimed: timedOf(globalEvents),
    globalStaying: globalEvents,
  };
}

function watchedState(state: CompiledState): CompiledState {
  const events = watchedEvents(state.events);
  const staying = state.isGlobal ? [] : events;
  return { ...state, events, readers: readersOf(events), timed: timedOf(events), staying };
}

function watchedEvents(events: LiveEvent[]): LiveEvent[] {
  const isSilence = ({ causes }: LiveEvent) =>
    causes.length > 0 && causes.every(({ time }) => time?.noneForMs);
  return events.filter(isSilence).map((event) => ({ ...event, target: null }));
}
