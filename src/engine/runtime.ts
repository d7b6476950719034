import type { Measurement, Place } from '../contract/values.ts';
import type { Bins } from './arithmetic.ts';
import type {
  CompiledCause,
  CompiledPurpose,
  CompiledState,
  LiveEvent,
  Moment,
  Profile,
} from './compile.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** A measurement that agreed. All causes that it met share one object. */
export type Agreed = Readonly<Pick<Measurement, 'val' | 'ts'>>;

/**
 * Where a cause's begin is read from: `ts` and arrival of a measurement, one after the other (NaN: the arrival is not
 * known). Of a cause that needs its outcomes in a row, the first of those that agree. Of one that needs n of m, each
 * that agreed, the oldest first. Null: an earlier version collected the window, and nothing is known of it.
 */
export type Begun = readonly number[] | null;

/**
 * What one cause has collected: the outcomes of its last measurements, and the baseline of a `relative` cause. All
 * members are always present, so that reading them is fast.
 */
export type CauseEvidence = {
  /** How many outcomes the window holds, and how many of them agreed. */
  of: number;
  matched: number;
  /** A short window: one bit per outcome, 1 if it agreed, the newest lowest. 0 if `words` holds the outcomes. */
  bits: number;
  /** A long window: 30 outcomes per word, the newest in the first; null while none of them agreed. */
  words: number[] | null;
  /** Only in an `EvidenceDraft`: how many of the newest outcomes are in `bits` and not yet in `words`. Otherwise 0. */
  ahead: number;
  /** Beside `ahead`: the word whose outcomes leave the window as others come, the next one highest. Otherwise 0. */
  leaving: number;
  baseline: number | undefined;
  /** The newest that agreed, while the window holds one that did. */
  agreed: Agreed | undefined;
  /** What its begin is read from (`begin.ts`); empty if it keeps none. */
  begun: Begun;
};

/**
 * `holding`: how many causes hold; with `anyOf` the groups of which all do, as bits. `episode`: 0, or once the event
 * has fired the groups that held then and of which no cause has disagreed since, as bits; without `anyOf` 1.
 */
export type EventEvidence = {
  causes: (CauseEvidence | null)[];
  holding: number;
  episode: number;
  /** The last outcomes of each lenient cause since the episode began (`evidence.ts`); null if there are none. */
  lately: (CauseEvidence | null)[] | null;
  /** For an event with time members; otherwise null. */
  time: EventTime | null;
};

/** Indexed by the event's `index`. Null, or missing at the end, if nothing is collected. */
export type Evidence = readonly (EventEvidence | null)[];

/**
 * Where a device is, and what its causes have collected. Immutable: its successor shares whatever stays the same.
 * `encodeRuntime` gives the stored form.
 */
export type Runtime = Readonly<Place> & {
  /** Evidence of the current state's events. That of global states' events is in `global`. */
  readonly local: Evidence;
  readonly global: Evidence;
};

export const noEvidence: Evidence = [];

/** Where a device is when the profile becomes current. There is no evidence yet, except that silences begin. */
export function startRuntime(profile: Profile, arrivedTs: WallMs): Runtime {
  const purpose = profile.purposes.get(profile.first.puId);
  const state = purpose?.states.get(profile.first.stId);
  const [local, global] = [enteredState(state, arrivedTs), enteredPurpose(purpose, arrivedTs)];
  return { ...profile.first, local, global };
}

/**
 * Moves to the place that the device reports. Evidence of that state's causes starts anew; that of global states only
 * with another purpose. Returns the same runtime if the device is there already.
 */
export function enter(
  profile: Profile,
  runtime: Runtime,
  { puId, stId }: Place,
  arrivedTs: WallMs,
): Runtime {
  if (puId === runtime.puId && stId === runtime.stId) return runtime;
  const purpose = profile.purposes.get(puId);
  const local = enteredState(purpose?.states.get(stId), arrivedTs);
  const global = puId === runtime.puId ? runtime.global : enteredPurpose(purpose, arrivedTs);
  return { puId, stId, local, global };
}

/** Evidence of a state's own events when it is entered from another state. */
export function enteredState(state: CompiledState | undefined, arrivedTs: WallMs): Evidence {
  return state && !state.isGlobal ? begun(state.timed.withSilences, arrivedTs) : noEvidence;
}

/** Evidence of all global states when their purpose is entered from another purpose. */
export function enteredPurpose(purpose: CompiledPurpose | undefined, arrivedTs: WallMs): Evidence {
  return purpose ? begun(purpose.globalTimed.withSilences, arrivedTs) : noEvidence;
}

function begun(withSilences: LiveEvent[], arrivedTs: WallMs): Evidence {
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

/**
 * Brings times later than `latestTs`, the latest that a message may have now (ms), back to it: they come from a clock
 * that was ahead and has been set right since (docs/engine.md, A clock that is set right). Returns the same runtime
 * if there are none.
 */
export function broughtBack(profile: Profile, runtime: Runtime, latestTs: number): Runtime {
  const purpose = profile.purposes.get(runtime.puId);
  const events = purpose?.states.get(runtime.stId)?.events ?? [];
  const local = evidenceBack(events, runtime.local, latestTs);
  const global = evidenceBack(purpose?.globalEvents ?? [], runtime.global, latestTs);
  const isSame = local === runtime.local && global === runtime.global;
  return isSame ? runtime : { ...runtime, local, global };
}

function evidenceBack(events: LiveEvent[], evidence: Evidence, latestTs: number): Evidence {
  let left: (EventEvidence | null)[] | null = null;
  for (const event of events) {
    const own = evidence[event.index];
    const time = own?.time && eventTimeBack(event, own.time, latestTs);
    if (!time || time === own.time) continue;
    left ??= evidence.slice();
    left[event.index] = { ...own, time };
  }
  return left ?? evidence;
}

function eventTimeBack(event: LiveEvent, time: EventTime, latestTs: number): EventTime {
  const causes = time.causes.map(
    (cause, index) => cause && causeTimeBack(event.causes[index]?.time ?? null, cause, latestTs),
  );
  const newestT = time.newestT === null ? null : Math.min(time.newestT, latestTs);
  const isSame = newestT === time.newestT && causes.every((cause, n) => cause === time.causes[n]);
  return isSame ? time : { newestT, causes };
}

function causeTimeBack(asked: CompiledCause['time'], time: CauseTime, latestTs: number): CauseTime {
  const run = time.run && runBack(time.run, asked?.forMs ?? 0, latestTs);
  const silence = time.silence && silenceBack(time.silence, asked?.noneForMs ?? 0, latestTs);
  const { lastT, agreedT, outcomeTs, lately } = time;
  // Everything that the cause took, it took at `lastT` or before.
  if (lastT === null || lastT <= latestTs) {
    return run === time.run && silence === time.silence ? time : { ...time, run, silence };
  }
  return {
    ...time,
    lastT: latestTs,
    agreedT: agreedT === null ? null : Math.min(agreedT, latestTs),
    run,
    silence,
    bins: null,
    outcomeTs: outcomeTs?.map((t) => Math.min(t, latestTs)) ?? null,
    lately: lately?.map((one) => ({ ...one, t: Math.min(one.t, latestTs) })) ?? null,
  };
}

function runBack(run: Run, forMs: number, latestTs: number): Run {
  const [sinceT, newestT] = [Math.min(run.sinceT, latestTs), Math.min(run.newestT, latestTs)];
  const due = run.due && dueBack(run.due, sinceT + forMs, latestTs);
  if (newestT === run.newestT && due?.t === run.due?.t && due?.ts === run.due?.ts) return run;
  // The clock that was ahead also dated its arrival, so it is no older than it is now.
  const newestAgeMs = Math.min(run.newestAgeMs, Math.max(0, latestTs - newestT));
  return { ...run, sinceT, newestT, newestAgeMs, due };
}

function silenceBack(silence: Silence, noneForMs: number, latestTs: number): Silence {
  const sinceTs = Math.min(silence.sinceTs, latestTs);
  const completeTs =
    silence.completeTs === null
      ? null
      : Math.max(sinceTs + noneForMs, Math.min(silence.completeTs, latestTs));
  const isSame = sinceTs === silence.sinceTs && completeTs === silence.completeTs;
  return isSame ? silence : { sinceTs, completeTs };
}

/** An event's evidence before its first measurement. */
export function noEventEvidence({ causes, isTimed }: LiveEvent): EventEvidence {
  const none = causes.map(() => null);
  const time = isTimed ? { newestT: null, causes: none } : null;
  return { causes: none.slice(), holding: 0, episode: 0, lately: null, time };
}

/** Whether the profile has that state in that purpose. */
export function hasPlace(profile: Profile, { puId, stId }: Place): boolean {
  return profile.purposes.get(puId)?.states.has(stId) === true;
}

/** Consecutive outcomes that agree, for a cause with `forMs`. Times in ms; `t`: a measurement's time. */
export type Run = {
  sinceT: number;
  newestT: number;
  /** How old its newest measurement was when it arrived. */
  newestAgeMs: number;
  /** When it is complete, and when its tick is due if nothing forces it before; null while outcomes are missing. */
  due: { t: number; ts: number } | null;
  isComplete: boolean;
};

/** Since when a sense with `noneForMs` has been silent, and when that was long enough, once its tick has run. */
export type Silence = { sinceTs: number; completeTs: number | null };

/** What time members add to a cause's evidence. Immutable. */
export type CauseTime = {
  /** The time of the last measurement that it evaluated. The next one counts as no earlier. */
  lastT: number | null;
  /** The newest that agreed: its time, and what was compared if that does not follow from it. */
  agreedT: number | null;
  compared: number | undefined;
  run: Run | null;
  silence: Silence | null;
  bins: Bins | null;
  /** With `maxAgeMs`: the time of each outcome in its window, oldest first. */
  outcomeTs: readonly number[] | null;
  /** With `maxAgeMs`, in an episode: the last outcomes of a lenient cause (`evidence.ts`). */
  lately: readonly TimedOutcome[] | null;
};

export type TimedOutcome = { t: number; agrees: boolean };

/** `newestT`: the newest time of a tick or of a measurement that a cause evaluated; kept if a cause has `maxAgeMs`. */
export type EventTime = {
  newestT: number | null;
  causes: readonly (CauseTime | null)[];
};

export const noTime: CauseTime = {
  lastT: null,
  agreedT: null,
  compared: undefined,
  run: null,
  silence: null,
  bins: null,
  outcomeTs: null,
  lately: null,
};

/** How long a tick waits for measurements that are still in transit; longer if the last one came late. Ms. */
const marginMs = 2_000;
const lateMarginMs = 60_000;
/** A measurement that is older than this when it arrives came late. */
const lateMs = 60_000;

type Due = NonNullable<Run['due']>;
type Asked = { forMs: number; needed: number };

/**
 * Extends a run by an outcome that agrees, its `count`-th, at time `t`. The run is complete `forMs` after its first
 * measurement, or with the last outcome that was still missing then.
 */
export function goOn(
  run: Run | null,
  { forMs, needed }: Asked,
  count: number,
  t: number,
  moment: Moment,
): Run {
  const newestAgeMs = ageOf(moment);
  const sinceT = run?.sinceT ?? t;
  const isComplete = run?.isComplete ?? false;
  const due = count === needed ? dueOf(sinceT + forMs, t, moment) : (run?.due ?? null);
  return { sinceT, newestT: t, newestAgeMs, due, isComplete };
}

function dueOf(completeT: number, t: number, moment: Moment): Due {
  const due = Math.max(completeT, t);
  const margin = moment.arrivedTs - moment.t > lateMs ? lateMarginMs : marginMs;
  return { t: due, ts: Math.max(due, moment.arrivedTs) + margin };
}

/**
 * Limits a due time to `latestTs`, after a clock that was ahead has been set right. `leastT`: `forMs` after the run's
 * beginning. A tick that waits longer than any margin was computed from an arrival that the clock dated ahead.
 */
function dueBack(due: Due, leastT: number, latestTs: number): Due {
  const t = Math.max(leastT, Math.min(due.t, latestTs));
  const earliestTs = Math.max(t, latestTs);
  return { t, ts: due.ts > earliestTs + lateMarginMs ? earliestTs + marginMs : due.ts };
}

/** How old a measurement was when it arrived, in ms; 0 if it is dated later than its arrival. */
export function ageOf({ t, arrivedTs }: Moment): number {
  return Math.max(0, arrivedTs - t);
}
