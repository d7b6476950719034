import type { Measurement, Place } from '../contract/values.ts';
import { wordBits } from './arithmetic.ts';
import type {
  CauseReader,
  CompiledCause,
  CompiledPurpose,
  CompiledState,
  Evaluated,
  LiveEvent,
  Profile,
} from './compile.ts';
import {
  type CauseEvidence,
  enteredPurpose,
  enteredState,
  type EventEvidence,
  type Evidence,
  noEvidence,
  type Runtime,
} from './runtime.ts';
import { agreesWithLimits, judge } from './thresholds.ts';
import { leftAtReentry, usedUp, withTime } from './timed.ts';
import {
  addOutcome,
  addOutcomes,
  disagreedOnce,
  EvidenceDraft,
  emptyWindow,
  endsEpisode,
  type GivenValue,
  isAllDisagreed,
} from './window.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Where a device is and what the live events have collected, during evaluation. */
export class EvaluationState {
  readonly #profile: Profile;
  readonly #base: Runtime;
  place: Place;
  purpose: CompiledPurpose | undefined;
  state: CompiledState | undefined;
  local: EvidenceDraft;
  global: EvidenceDraft;
  /** Events whose episodes have ended and are not reported yet. */
  readonly ended: LiveEvent[] = [];
  readonly localDeferred: Deferred = new Map();
  readonly globalDeferred: Deferred = new Map();

  constructor(profile: Profile, runtime: Runtime) {
    this.#profile = profile;
    this.#base = runtime;
    this.place = runtime;
    this.purpose = profile.purposes.get(runtime.puId);
    this.state = this.purpose?.states.get(runtime.stId);
    this.local = new EvidenceDraft(runtime.local, this.ended);
    this.global = new EvidenceDraft(runtime.global, this.ended);
  }

  draftOf({ isGlobal }: LiveEvent): EvidenceDraft {
    return isGlobal ? this.global : this.local;
  }

  /** Collects global states' deferred numbers. Which of their events take a number depends on the current state. */
  endGlobalDeferred(): void {
    for (const deferred of this.globalDeferred.values()) deferred.end(this.global);
    this.globalDeferred.clear();
  }

  /**
   * Moves the device after a firing. `namesPurpose`: the action has a `gotoPuId`. That empties what global states
   * have collected, even if it names the current purpose.
   */
  enter(place: Place, namesPurpose: boolean, arrivedTs: WallMs): void {
    const from = this.place;
    const isSamePurpose = place.puId === from.puId;
    const staysInState = isSamePurpose && place.stId === from.stId;
    this.place = place;
    this.purpose = this.#profile.purposes.get(place.puId);
    this.state = this.purpose?.states.get(place.stId);
    this.local = new EvidenceDraft(
      staysInState
        ? anew(this.state?.staying ?? [], this.local)
        : enteredState(this.state, arrivedTs),
      this.ended,
    );
    this.localDeferred.clear();
    if (!namesPurpose) this.endGlobalDeferred();
    this.globalDeferred.clear();
    if (!namesPurpose) return;
    this.global = new EvidenceDraft(
      isSamePurpose
        ? anew(this.purpose?.globalStaying ?? [], this.global)
        : enteredPurpose(this.purpose, arrivedTs),
      this.ended,
    );
  }

  /** Reports which episodes have ended. */
  tellEnded(outcome: Evaluated): void {
    const { puId } = this.place;
    outcome.ended = this.ended.splice(0).map(({ stId, evId }) => ({ puId, stId, evId }));
  }

  /** Returns the runtime; the very object that was given if nothing changed. */
  end(): Runtime {
    for (const deferred of this.localDeferred.values()) deferred.end(this.local);
    for (const deferred of this.globalDeferred.values()) deferred.end(this.global);
    const [local, global] = [this.local.end(), this.global.end()];
    const base = this.#base;
    if (this.place === base && local === base.local && global === base.global) return base;
    const { puId, stId } = this.place;
    return { puId, stId, local, global };
  }
}

/** What these events keep when their state or purpose is entered again. */
function anew(staying: LiveEvent[], draft: EvidenceDraft): Evidence {
  let evidence: (EventEvidence | null)[] | null = null;
  for (const event of staying) {
    const before = draft.get(event.index);
    const left = before && leftAtReentry(event, before);
    if (!left) continue;
    evidence ??= [];
    while (evidence.length < event.index) evidence.push(null);
    evidence[event.index] = left;
  }
  return evidence ?? noEvidence;
}

/**
 * Adds a measurement to what an event's reading causes have collected. `once` is what it makes of a window of one
 * outcome if it agrees (`agreedOnce`). Returns the event's evidence, or null if it did not change: no cause evaluates
 * such a value, or it repeats earlier outcomes. `isLeaving`: only causes that disagree take it.
 */
export function collect(
  { event, causes: indexes, limits }: CauseReader,
  draft: EvidenceDraft,
  val: Measurement['val'],
  once: CauseEvidence,
  isLeaving: boolean,
): EventEvidence | null {
  const base = draft.baseOf(event.index);
  let before = draft.get(event.index);
  const isInEpisode = before !== null && before.isInEpisode;
  let own: EventEvidence | null = null;
  let ended = false;
  for (let at = 0; at < indexes.length; at++) {
    const index = indexes[at] as number;
    const cause = event.causes[index] as CompiledCause;
    const collected = before?.causes[index] ?? null;
    const agrees =
      limits && typeof val === 'number'
        ? agreesWithLimits(limits, at, val)
        : judge(cause, val, collected?.baseline);
    if (agrees === null || (agrees && isLeaving)) continue;
    // In an episode, no window is full of outcomes that disagreed.
    if (!agrees && (collected === disagreedOnce || isAsBefore(collected, cause, val))) continue;
    before = own ??= draft.open(event);
    if (isInEpisode && endsEpisode(draft, event, own, index, agrees)) ended = true;
    if (cause.isSingle) {
      own.holding += (agrees ? 1 : 0) - (collected?.matched ?? 0);
      own.causes[index] = agrees ? once : disagreedOnce;
    } else {
      const isOwn = collected !== null && collected !== base?.causes[index];
      const window = isOwn ? collected : draft.openCause(event, own, index);
      own.holding += collectMore(cause, window, val, agrees, once);
    }
  }
  if (own && ended) draft.endEpisode(event, own);
  return own;
}

/** Whether a measurement that disagrees leaves a cause's evidence unchanged. */
function isAsBefore(
  collected: CauseEvidence | null,
  cause: CompiledCause,
  val: Measurement['val'],
): boolean {
  return collected !== null && !beginsAt(val, cause, collected) && isAllDisagreed(collected, cause);
}

/** Returns by how much the number of causes that hold changes. */
function collectMore(
  cause: CompiledCause,
  window: CauseEvidence,
  val: Measurement['val'],
  agrees: boolean,
  { agreed }: CauseEvidence,
): -1 | 0 | 1 {
  const held = window.matched >= cause.needed;
  if (typeof val === 'number' && beginsAt(val, cause, window)) window.baseline = val + 0;
  addOutcome(window, cause, agrees ? agreed : undefined);
  const holds = window.matched >= cause.needed;
  if (holds === held) return 0;
  return holds ? 1 : -1;
}

/** Whether a measurement fires an event that is spent at once (`isSpentAtOnce`). Nothing is collected for it. */
export function isSpent(
  { event }: CauseReader,
  draft: EvidenceDraft,
  val: Measurement['val'],
): boolean {
  if (draft.get(event.index) !== null) return false;
  for (const cause of event.causes) if (judge(cause, val, undefined) !== true) return false;
  return true;
}

/** Whether this is the first value that a relative cause evaluates. */
function beginsAt(
  val: Measurement['val'],
  { relative }: CompiledCause,
  { baseline }: CauseEvidence,
) {
  return relative && baseline === undefined && typeof val === 'number';
}

/** Whether every cause of the event holds. An event without causes never completes. */
export function isComplete({ causes }: LiveEvent, { holding }: EventEvidence): boolean {
  return causes.length > 0 && holding === causes.length;
}

/** What remains after a firing: empty windows, baselines, what time members keep, and that an episode has begun. */
export function useUp(event: LiveEvent, evidence: EventEvidence): EventEvidence | null {
  const { hasEpisodes: isInEpisode, isTimed } = event;
  const { lately } = evidence;
  let isEmpty = !isInEpisode && !isTimed;
  const causes = evidence.causes.map((collected) => {
    if (collected?.baseline === undefined) return null;
    isEmpty = false;
    return emptyWindow(collected.baseline);
  });
  if (isEmpty) return null;
  const used: EventEvidence = { causes, holding: 0, isInEpisode, lately, time: null };
  return evidence.time ? withTime(event, used, usedUp(evidence.time)) : used;
}

/** Does what `collect` does, with several numbers at once, none of which completes the event. */
function collectDeferred(
  { event, causes: indexes, limits }: CauseReader,
  draft: EvidenceDraft,
  vals: number[],
  onces: CauseEvidence[],
  from: number,
  end: number,
): void {
  if (!limits) return;
  let own: EventEvidence | null = null;
  for (let at = 0; at < indexes.length; at++) {
    const index = indexes[at] as number;
    const cause = event.causes[index] as CompiledCause;
    const above = limits[3 * at] as number;
    const below = limits[3 * at + 1] as number;
    const meets = limits[3 * at + 2] === 1 ? 0 : 1;
    const before = (own ?? draft.get(event.index))?.causes[index] ?? null;
    const held = (before?.matched ?? 0) >= cause.needed;
    let window: CauseEvidence | null = null;
    for (let first = from; first < end;) {
      const room = wordBits - (((window ?? before)?.ahead ?? 0) % wordBits);
      const next = Math.min(end, first + room);
      let outcomes = 0;
      for (let n = first; n < next; n++) {
        const val = vals[n] as number;
        outcomes = (outcomes << 1) | (val > above && val < below ? meets : 1 - meets);
      }
      const count = next - first;
      first = next;
      if (!window) {
        if (outcomes === 0 && before && isAllDisagreed(before, cause)) continue;
        own ??= draft.open(event);
        window = draft.openCause(event, own, index);
      }
      // The newest outcome that agreed is the lowest bit.
      const newest = outcomes === 0 ? undefined : onces[next - 1 - lowestOne(outcomes)]?.agreed;
      addOutcomes(window, cause, outcomes, count, newest);
    }
    if (window && own) own.holding += Number(window.matched >= cause.needed) - Number(held);
  }
}

const lowestOne = (bits: number): number => 31 - Math.clz32(bits & -bits);

/** By readers: those of the state's own events, or those of global ones. */
export type Deferred = Map<CauseReader[], DeferredNumbers>;

/** Fewer measurements than this are collected one by one. */
const leastDeferred = 8;

/**
 * Numbers of one sense that its readers take later, together, if their event does not fire. With long windows, a
 * cause that lacks 500 outcomes cannot hold for the next 499 measurements; taking these cause by cause costs a tenth
 * of taking each alone. With windows of one outcome, one cause that disagrees shows that the event does not fire, and
 * only the newest number counts.
 */
class DeferredNumbers {
  readonly #readers: CauseReader[];
  readonly #vals: number[] = [];
  readonly #onces: CauseEvidence[] = [];
  /** By reader: the last cause that kept its event from firing, as an index into the reader's limits. */
  readonly #blocking: number[];
  /** By reader with `isNewestOnly`: whether its event is in an episode, which a number that disagrees ends. */
  readonly #isOpen: boolean[];
  /** By reader: the first number it has not collected, and the first one it must take at once. */
  readonly #from: number[];
  readonly #until: number[];
  /** The reader that is being offered the newest number; later readers have not been offered it yet. */
  #offering: number;

  constructor(readers: CauseReader[], draft: EvidenceDraft) {
    this.#readers = readers;
    this.#isOpen = readers.map((reader) => isOpen(reader, draft));
    this.#from = readers.map(() => 0);
    this.#until = readers.map(() => 0);
    this.#blocking = readers.map(() => 0);
    this.#offering = readers.length;
  }

  /** Adds a number, which each reader must then take or defer. `once`: as for `collect`. */
  push(val: number, once: CauseEvidence): void {
    this.#vals.push(val);
    this.#onces.push(once);
  }

  /** Whether the reader defers the newest number. If not, it has now collected all earlier ones. */
  defers(index: number, draft: EvidenceDraft): boolean {
    this.#offering = index;
    const newest = this.#vals.length - 1;
    const val = this.#vals[newest] as number;
    if (newest < (this.#until[index] as number)) {
      if (!this.#isWatched(index, val, draft)) return true;
    } else if (this.#isBlocked(index, val)) {
      this.#until[index] = newest + 1;
      return true;
    }
    this.#collect(index, newest, draft);
    return false;
  }

  /** Call it once the reader has collected the newest number. */
  offered(index: number, draft: EvidenceDraft): void {
    const next = this.#vals.length;
    this.#from[index] = next;
    const reader = this.#readers[index] as CauseReader;
    this.#isOpen[index] = isOpen(reader, draft);
    const ahead = numbersToDefer(reader, draft);
    this.#until[index] = ahead < leastDeferred ? next : next + ahead;
  }

  /** Call it once all readers have been offered the newest number. */
  endOffer(): void {
    this.#offering = this.#readers.length;
  }

  /** Collects what is deferred. The object must not be used afterwards. */
  end(draft: EvidenceDraft): void {
    const count = this.#vals.length;
    for (let index = 0; index < this.#readers.length; index++)
      this.#collect(index, index < this.#offering ? count : count - 1, draft);
  }

  /** Whether this number may end an episode of the reader's event, which must be reported at once. */
  #isWatched(index: number, val: number, draft: EvidenceDraft): boolean {
    const reader = this.#readers[index] as CauseReader;
    const { event, causes, limits } = reader;
    if (!limits || !isOpen(reader, draft)) return false;
    if (event.isLenient) return true;
    for (let at = 0; at < causes.length; at++) if (!agreesWithLimits(limits, at, val)) return true;
    return false;
  }

  /** Whether a reader with `isNewestOnly` has a cause that disagrees with this number. */
  #isBlocked(index: number, val: number): boolean {
    const { isNewestOnly, limits, causes } = this.#readers[index] as CauseReader;
    if (!isNewestOnly || !limits || this.#isOpen[index]) return false;
    const last = this.#blocking[index] as number;
    if (!agreesWithLimits(limits, last, val)) return true;
    for (let at = 0; at < causes.length; at++) {
      if (agreesWithLimits(limits, at, val)) continue;
      this.#blocking[index] = at;
      return true;
    }
    return false;
  }

  #collect(index: number, end: number, draft: EvidenceDraft): void {
    const from = this.#from[index] as number;
    this.#from[index] = end;
    // A reader that takes a number before the first one it may skip has nothing deferred.
    if (from >= end || from >= (this.#until[index] as number)) return;
    const reader = this.#readers[index] as CauseReader;
    const newest = end - 1;
    if (reader.isNewestOnly)
      collect(
        reader,
        draft,
        this.#vals[newest] as number,
        this.#onces[newest] as CauseEvidence,
        false,
      );
    else collectDeferred(reader, draft, this.#vals, this.#onces, from, end);
  }
}

/** Adds the number to the readers' deferred ones; null if no reader defers any, or if the value is no number. */
export function deferInto(
  readers: CauseReader[],
  all: Deferred,
  { val, once }: GivenValue,
  draft: EvidenceDraft,
): DeferredNumbers | null {
  let deferred = all.get(readers);
  if (typeof val !== 'number') {
    // `isAny` agrees with positions too.
    deferred?.end(draft);
    all.delete(readers);
    return null;
  }
  if (!deferred) {
    if (!readers.some(({ isLong, isNewestOnly }) => isLong || isNewestOnly)) return null;
    all.set(readers, (deferred = new DeferredNumbers(readers, draft)));
  }
  deferred.push(val, once);
  return deferred;
}

/** Whether the reader's event is in an episode. */
function isOpen({ event }: CauseReader, draft: EvidenceDraft): boolean {
  return event.hasEpisodes && draft.get(event.index)?.isInEpisode === true;
}

/** How many more numbers cannot fire the reader's event, because one of its causes lacks more outcomes. */
function numbersToDefer({ event, causes, isLong }: CauseReader, draft: EvidenceDraft): number {
  if (!isLong) return 0;
  const collected = draft.get(event.index)?.causes;
  let most = 0;
  for (const index of causes) {
    const lacks =
      (event.causes[index] as CompiledCause).needed - (collected?.[index]?.matched ?? 0);
    if (lacks > most) most = lacks;
  }
  return most - 1;
}
