import type { Measurement } from '../contract/values.ts';
import {
  type CompiledPurpose,
  type CompiledState,
  type LiveEvent,
  type Profile,
  indexCausesBySense,
  timedOf,
} from './compile.ts';
import type { Runtime } from './runtime.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/**
 * The newest time of a sense, and the values it has then, the first of them first: up to `maxValues`. `last`: the last of
 * them to come, where there are more.
 */
export type Newest = { ts: number; vals: Measurement['val'][]; last?: Measurement['val'] };

/** The newest of each sense: what is older, or one of these once more, is no news. Nothing clears it. */
export type LastSeen = Readonly<Record<string, Newest>>;

/** How many values one sense may have in one millisecond; further ones are not evaluated. */
export const maxValues = 16;

/**
 * What is the newest of a sense behind a measurement of it; `last` is what was. Null when the measurement
 * is not to be evaluated: older than the newest one, or of the same millisecond with a value seen then already.
 */
export function newestAfter(last: Newest | undefined, { val, ts }: Measurement): Newest | null {
  if (last && ts < last.ts) return null;
  const vals = last?.ts === ts ? withValue(last, val) : [storable(val)];
  return vals && { ts, vals };
}

/** Takes a measurement into the memory of its sense. Null when it is not to be evaluated: `newestAfter`. */
export function notice(seen: LastSeen, measurement: Measurement): LastSeen | null {
  const { sId } = measurement;
  const newest = newestAfter(Object.hasOwn(seen, sId) ? seen[sId] : undefined, measurement);
  return newest && { ...seen, [sId]: newest };
}

/** With a value that is stored beyond those that are evaluated: it is none of them, and the last to come. */
export function withLast(newest: Newest, { val, ts }: Measurement): Newest {
  const isBeyond = newest.ts === ts && newest.vals.length >= maxValues;
  return isBeyond ? { ...newest, last: storable(val) } : newest;
}

function withValue({ vals }: Newest, val: Measurement['val']): Newest['vals'] | null {
  if (vals.length >= maxValues || vals.some((other) => isSame(other, val))) return null;
  return [...vals, storable(val)];
}

function isSame(one: Measurement['val'], other: Measurement['val']): boolean {
  if (typeof one === 'number' || typeof other === 'number') return one === other;
  return one.lat === other.lat && one.long === other.long;
}

/** As JSON gives it back: no negative zero, nothing beside latitude and longitude. */
export function storable(val: Measurement['val']): Measurement['val'] {
  return typeof val === 'number' ? val + 0 : { lat: val.lat + 0, long: val.long + 0 };
}

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
    globalCausesBySense: indexCausesBySense(globalEvents),
    globalTimed: timedOf(globalEvents),
    globalStaying: globalEvents,
  };
}

function watchedState(state: CompiledState): CompiledState {
  const events = watchedEvents(state.events);
  const staying = state.isGlobal ? [] : events;
  return {
    ...state,
    events,
    causesBySense: indexCausesBySense(events),
    timed: timedOf(events),
    staying,
  };
}

function watchedEvents(events: LiveEvent[]): LiveEvent[] {
  const isSilence = ({ causes }: LiveEvent) =>
    causes.length > 0 && causes.every(({ time }) => time?.noneForMs);
  return events.filter(isSilence).map((event) => ({ ...event, target: null }));
}

/** When the device's connector did not listen, ascending; `toTs` null while it lasts. Absent: it always did. */
export type Listening = { gaps: readonly Gap[] };

type Gap = { fromTs: number; toTs: number | null };

/** A connector that says nothing for so long may still listen, ms: a gap is longer. */
export const unnoticedGapMs = 15_000;

/** How long a connector listens again before ticks run, ms: what devices have kept meanwhile comes in first. */
export const pauseMs = 300_000;

/**
 * Gaps that ended before this time make no difference to when the ticks of this evidence run; null: none does, there is
 * no such tick.
 */
export function listenedSince({ local, global }: Pick<Runtime, 'local' | 'global'>): number | null {
  const times = [...local, ...global].flatMap((evidence) =>
    (evidence?.time?.causes ?? []).flatMap((cause) => [
      cause?.run?.due?.ts ?? [],
      cause?.silence?.sinceTs ?? [],
    ]),
  );
  const earliest = times.flat().reduce((least, ts) => Math.min(least, ts), Infinity);
  return earliest === Infinity ? null : earliest - pauseMs;
}

/** When so much time was listened to since then. A gap that lasts goes on until `nowTs` at least. */
export function afterListening(
  sinceTs: number,
  ms: number,
  { gaps }: Listening,
  nowTs: WallMs,
): number {
  let [at, left] = [sinceTs, ms];
  for (const gap of gaps) {
    const until = endOf(gap, nowTs);
    if (until <= at) continue;
    const listened = Math.max(0, gap.fromTs - at);
    if (listened >= left) break;
    left -= listened;
    at = until;
  }
  return at + left;
}

/** When a tick of that time runs: not in a gap, and not in the pause after it. */
export function afterPauses(
  dueTs: number,
  pause: number,
  { gaps }: Listening,
  nowTs: WallMs,
): number {
  let at = dueTs;
  for (const gap of gaps) {
    const until = endOf(gap, nowTs) + pause;
    if (at > gap.fromTs && at < until) at = until;
  }
  return at;
}

function endOf({ fromTs, toTs }: Gap, nowTs: WallMs): number {
  return toTs ?? Math.max(fromTs, nowTs);
}
