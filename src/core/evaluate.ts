import { collect, isComplete, useUp } from './collect.ts';
import type { Profile, Reader } from './compile.ts';
import type { LiveEvent } from './compile-event.ts';
import type { DeviceEvent, SenseEvent } from './event.ts';
import { deviceEventOf, senseEventOf } from './found.ts';
import type { Measurement } from './measurement.ts';
import type { Place } from './place.ts';
import type { Actions } from './purpose.ts';
import { enter, hasPlace } from './runtime.ts';
import type { EventEvidence, Runtime } from './runtime.ts';

/** An event that fired. `ring`: push and SMS go out, for it is the first firing of its episode. */
export type Firing = {
  event: SenseEvent;
  /** The event's name in its purpose, empty where it has none. */
  name: string;
  record: boolean;
  ring: boolean;
  actions: Actions;
};

/** The device moved; no `event` where it entered the state it was in. */
export type Transition = { to: Place; event?: DeviceEvent };

/** `runtime` is the very object that was given where the evidence is what it was. */
export type Evaluation = { runtime: Runtime; firings: Firing[]; transition?: Transition };

/**
 * Evaluates one measurement that is news (`notice`): a pure function of its arguments, none of which it
 * changes. Events are tried in order, those of the current state first, then those of the global
 * states; the first one that moves the device ends it.
 */
export function evaluate(profile: Profile, runtime: Runtime, measurement: Measurement): Evaluation {
  const { sId, ts } = measurement;
  const firings: Firing[] = [];
  const { pId } = profile;
  const { puId } = runtime;
  let next = runtime;
  for (const { event, causes } of readersOf(profile, runtime, sId)) {
    const scope = event.isGlobal ? 'global' : 'local';
    const before = next[scope][event.key];
    const evidence = collect(event, causes, before, measurement);
    // What is kept never holds as a whole: it would have fired, and been used up.
    if (!evidence || evidence === before) continue;
    const fires = isComplete(event, evidence);
    const kept = fires ? useUp(event, evidence) : evidence;
    next = { ...next, [scope]: { ...next[scope], [event.key]: kept } };
    if (!fires) continue;
    const origin = { pId, puId, event, ts };
    firings.push(firingOf(event, senseEventOf(origin, evidence), evidence));
    if (!event.target || !hasPlace(profile, event.target.place)) continue;
    const { place: to, entersPurpose } = event.target;
    const moved = deviceEventOf(origin, runtime, to);
    const transition = moved ? { to, event: moved } : { to };
    return { runtime: enter(profile, next, to, entersPurpose), firings, transition };
  }
  return { runtime: next, firings };
}

/** Live events that read the sense, in the order in which they are tried, each once. */
function readersOf(profile: Profile, { puId, stId }: Place, sId: string): Reader[] {
  const purpose = profile.purposes.get(puId);
  const own = purpose?.states.get(stId)?.readers.get(sId) ?? [];
  const global = purpose?.globalReaders.get(sId) ?? [];
  if (global.length === 0) return own;
  return [...own, ...global.filter(({ event }) => event.stId !== stId)];
}

function firingOf(event: LiveEvent, found: SenseEvent, evidence: EventEvidence): Firing {
  const ring = event.rings && evidence.rung !== true;
  return {
    event: event.rings && !ring ? { ...found, notified: false } : found,
    name: event.name,
    record: event.record,
    ring,
    actions: event.actions,
  };
}
