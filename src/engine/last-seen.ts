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
 * The newest time of a sense, and its values at that time in the order of arrival, up to `maxValues`. `last`: the
 * last one to arrive, if there were more.
 */
export type Newest = { ts: number; vals: Measurement['val'][]; last?: Measurement['val'] };

/** The newest of each sense. An older measurement, or a repetition of these, is already seen. Nothing clears it. */
export type LastSeen = Readonly<Record<string, Newest>>;

/** Small enough that copying a page costs little, large enough that most lists are one page. */
const perPage = 32;

/**
 * An immutable list. A copy with another element shares all but one page, so a device with a thousand senses does not
 * copy what is known of all of them for each measurement.
 */
export class CowArray<T> {
  readonly #pages: readonly (readonly (T | undefined)[])[];

  private constructor(pages: readonly (readonly (T | undefined)[])[]) {
    this.#pages = pages;
  }

  static of<T>(elements: readonly (T | undefined)[]): CowArray<T> {
    const count = Math.ceil(elements.length / perPage);
    return new CowArray(
      Array.from({ length: count }, (_, page) =>
        elements.slice(page * perPage, (page + 1) * perPage),
      ),
    );
  }

  get(index: number): T | undefined {
    return this.#pages[Math.floor(index / perPage)]?.[index % perPage];
  }

  /** `index` must be within the list. */
  with(index: number, element: T): CowArray<T> {
    const page = Math.floor(index / perPage);
    const changed = (this.#pages[page] ?? []).slice();
    changed[index % perPage] = element;
    const pages = this.#pages.slice();
    pages[page] = changed;
    return new CowArray(pages);
  }
}

/** How many values one sense may have in one millisecond. Further ones are not evaluated. */
export const maxValues = 16;

/**
 * The newest of a sense after a measurement of it. `last`: the newest before. Null if the measurement must not be
 * evaluated: it is older than the newest one, or repeats a value of the same millisecond.
 */
export function newestAfter(last: Newest | undefined, { val, ts }: Measurement): Newest | null {
  if (last && ts < last.ts) return null;
  const vals = last?.ts === ts ? withValue(last, val) : [storable(val)];
  return vals && { ts, vals };
}

/** Records a measurement as seen. Null if it must not be evaluated: see `newestAfter`. */
export function notice(seen: LastSeen, measurement: Measurement): LastSeen | null {
  const { sId } = measurement;
  const newest = newestAfter(Object.hasOwn(seen, sId) ? seen[sId] : undefined, measurement);
  return newest && { ...seen, [sId]: newest };
}

/** Records a value beyond `maxValues`, which is stored but not evaluated, as the last one to arrive. */
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

/** The value as JSON returns it: no negative zero, and only latitude and longitude. */
export function storable(val: Measurement['val']): Measurement['val'] {
  return typeof val === 'number' ? val + 0 : { lat: val.lat + 0, long: val.long + 0 };
}

const known = new WeakMap<Profile['purposes'], Profile['purposes'] | null>();

/**
 * What the service evaluates for a device that evaluates its profile itself: events whose causes are all silences,
 * since no device can report those. They move nothing. Null if there are none. Both profiles can read each other's
 * runtimes.
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

/** When the device's connector was not listening, ascending; `toTs` is null while a gap lasts. */
export type Listening = { gaps: readonly Gap[] };

type Gap = { fromTs: number; toTs: number | null };

/** A connector that is quiet for this long may still be listening, ms. Gaps are longer. */
export const unnoticedGapMs = 15_000;

/** How long a connector listens again before ticks run, ms. Devices first send what they kept meanwhile. */
export const pauseMs = 300_000;

/**
 * Gaps that ended before this time do not affect when this evidence's ticks run. Null: no gap does, because it has no
 * such tick.
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

/** When `ms` of listening have passed since `sinceTs`. A gap that lasts counts until `nowTs` at least. */
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

/** When a tick that is due then runs: not in a gap, nor in the pause after it. */
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
