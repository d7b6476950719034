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
  /** While it is worked on (`EvidenceDraft`): how many of the newest are in `bits` and not yet in `words`. Else 0. */
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
  /** The last outcomes of each lenient cause since the episode began (`window.ts`); null where there are none. */
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
export function startRuntime(profile: Profile, arrivedTs: WallMs): Runtime {
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
  arrivedTs: WallMs,
): Runtime {
  if (puId === runtime.puId && stId === runtime.stId) return runtime;
  const purpose = profile.purposes.get(puId);
  const local = enteredState(purpose?.states.get(stId), arrivedTs);
  const global = puId === runtime.puId ? runtime.global : enteredPurpose(purpose, arrivedTs);
  return { puId, stId, local, global };
}

/** Evidence of a state's own events when it is entered from another one. */
export function enteredState(state: CompiledState | undefined, arrivedTs: WallMs): Evidence {
  return state && !state.isGlobal ? begun(state.timed.withSilences, arrivedTs) : noEvidence;
}

/** Evidence of all global states when their purpose is entered from another one. */
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
 * The runtime without times later than `latestTs`, the latest that a message may have now (ms): such times were
 * written by a clock that was ahead, and has been set right since (docs/engine.md, A clock that is set right). The very
 * same runtime where there are none.
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
  // What the cause took it took at `lastT` or before.
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
  // It arrived by the clock that was ahead: it is no older than it is now.
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

/** Agreeing outcomes one after the other, of a cause with `forMs`. Times in ms; `t`: when a measurement was taken. */
export type Run = {
  sinceT: number;
  newestT: number;
  /** How old its newest measurement was at its arrival. */
  newestAgeMs: number;
  /** When it is complete, and when its tick is due if nothing forces that before; null while outcomes are missing. */
  due: { t: number; ts: number } | null;
  isComplete: boolean;
};

/** Since when nothing was heard of the sense of a cause with `noneForMs`; when it was complete, once its tick has run. */
export type Silence = { sinceTs: number; completeTs: number | null };

/** What members of time add to a cause's evidence. Never changed: another one takes its place. */
export type CauseTime = {
  /** When the last measurement was taken that it evaluated: the next one is not taken before that. */
  lastT: number | null;
  /** The newest one that agreed: when it was taken, and what was compared where that does not follow from it. */
  agreedT: number | null;
  compared: number | undefined;
  run: Run | null;
  silence: Silence | null;
  bins: Bins | null;
  /** With `maxAgeMs`: when each outcome of its window was taken, oldest first. */
  outcomeTs: readonly number[] | null;
  /** With that, in an episode: its last outcomes, if it is lenient (`window.ts`). */
  lately: readonly TimedOutcome[] | null;
};

export type TimedOutcome = { t: number; agrees: boolean };

/** `newestT`: the newest time that any of the causes evaluated, or of a tick; kept where a cause has `maxAgeMs`. */
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

/** How long a tick waits for measurements that are under way; longer where the last one came late. Ms. */
const marginMs = 2_000;
const lateMarginMs = 60_000;
/** Older than that at its arrival, a measurement came late. */
const lateMs = 60_000;

type Due = NonNullable<Run['due']>;
type Asked = { forMs: number; needed: number };

/**
 * A run with one agreeing outcome more, its `count`-th, which is taken at `t`. It is complete `forMs` after its first
 * measurement, or with the outcome that was still missing then.
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
 * The same where no time may be later than `latestTs`: the clock was ahead and is right again. `leastT`: `forMs` after the
 * beginning of the run. A tick that waits for longer than any margin waits for an arrival that the clock dated ahead.
 */
function dueBack(due: Due, leastT: number, latestTs: number): Due {
  const t = Math.max(leastT, Math.min(due.t, latestTs));
  const earliestTs = Math.max(t, latestTs);
  return { t, ts: due.ts > earliestTs + lateMarginMs ? earliestTs + marginMs : due.ts };
}

/** How old a measurement was at its arrival, ms; one that is ahead of it is not older than that. */
export function ageOf({ t, arrivedTs }: Moment): number {
  return Math.max(0, arrivedTs - t);
}
