import type { Profile } from './compile.ts';
import type { CompiledPurpose, CompiledState } from './compile-purpose.ts';
import type { LiveEvent } from './compile-event.ts';
import type { Measurement } from '../contract/measurement.ts';
import type { Place } from '../contract/place.ts';
import type { CauseTime, EventTime, Run } from './time-evidence.ts';
import { noTime } from './time-evidence.ts';

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
  /** The last outcomes of each lenient cause since the episode began (`episode.ts`); null where there are none. */
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
export function startRuntime(profile: Profile, arrivedTs: number): Runtime {
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
  arrivedTs: number,
): Runtime {
  if (puId === runtime.puId && stId === runtime.stId) return runtime;
  const purpose = profile.purposes.get(puId);
  const local = enteredState(purpose?.states.get(stId), arrivedTs);
  const global = puId === runtime.puId ? runtime.global : enteredPurpose(purpose, arrivedTs);
  return { puId, stId, local, global };
}

/** Evidence of a state's own events when it is entered from another one. */
export function enteredState(state: CompiledState | undefined, arrivedTs: number): Evidence {
  return state && !state.isGlobal ? begun(state.timed.withSilences, arrivedTs) : noEvidence;
}

/** Evidence of all global states when their purpose is entered from another one. */
export function enteredPurpose(purpose: CompiledPurpose | undefined, arrivedTs: number): Evidence {
  return purpose ? begun(purpose.globalTimed.withSilences, arrivedTs) : noEvidence;
}

function begun(withSilences: LiveEvent[], arrivedTs: number): Evidence {
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

/** `latestTs`: what is later was written by a clock that was ahead, and has been set back since. Ms. */
export type AfterLeap = { nowTs: number; latestTs: number };

/**
 * With the times of a clock that was ahead brought back to the present: what would be complete, or too old, only once
 * time has come as far is so when as much time has passed from now on. The very same runtime where there are none.
 */
export function broughtBack(profile: Profile, runtime: Runtime, at: AfterLeap): Runtime {
  const purpose = profile.purposes.get(runtime.puId);
  const local = evidenceBack(purpose?.states.get(runtime.stId)?.events ?? [], runtime.local, at);
  const global = evidenceBack(purpose?.globalEvents ?? [], runtime.global, at);
  const isSame = local === runtime.local && global === runtime.global;
  return isSame ? runtime : { ...runtime, local, global };
}

function evidenceBack(events: LiveEvent[], evidence: Evidence, at: AfterLeap): Evidence {
  const left = evidence.slice();
  for (const { index } of events) {
    const own = evidence[index];
    if (own?.time) left[index] = { ...own, time: eventTimeBack(own.time, at) };
  }
  return events.some(({ index }) => left[index]?.time !== evidence[index]?.time) ? left : evidence;
}

function eventTimeBack(time: EventTime, at: AfterLeap): EventTime {
  const causes = time.causes.map((cause) => cause && causeTimeBack(cause, at));
  const newestT = timeBack(time.newestT, at);
  const isSame = newestT === time.newestT && causes.every((cause, n) => cause === time.causes[n]);
  return isSame ? time : { newestT, causes };
}

const timeBack = <T extends number | null>(t: T, { nowTs, latestTs }: AfterLeap) =>
  t !== null && t > latestTs ? nowTs : t;

/** A run is complete, and its tick comes, this long apart at most. */
const longestDelayMs = 60_000;

function causeTimeBack(cause: CauseTime, at: AfterLeap): CauseTime {
  const { latestTs } = at;
  const { lastT, agreedT, run, silence, bins, outcomeTs, lately } = cause;
  // What measurements with times of their own began waits for a tick that was due by their arrival.
  const waits = !!run?.due && run.due.ts > Math.max(run.due.t, latestTs) + longestDelayMs;
  if (!waits && (lastT ?? 0) <= latestTs && (silence?.sinceTs ?? 0) <= latestTs) return cause;
  return {
    ...cause,
    lastT: timeBack(lastT, at),
    agreedT: timeBack(agreedT, at),
    run: run && runBack(run, at),
    silence: silence && {
      sinceTs: timeBack(silence.sinceTs, at),
      completeTs: timeBack(silence.completeTs, at),
    },
    bins: (lastT ?? 0) > latestTs ? null : bins,
    outcomeTs: outcomeTs && outcomeTs.map((t) => timeBack(t, at)),
    lately: lately && lately.map((one) => ({ ...one, t: timeBack(one.t, at) })),
  };
}

function runBack(run: Run, at: AfterLeap): Run {
  const [sinceT, newestT] = [timeBack(run.sinceT, at), timeBack(run.newestT, at)];
  const dueT = run.due && run.due.t - (run.sinceT - sinceT);
  const due = dueT === null ? null : { t: dueT, ts: Math.max(dueT, at.nowTs) };
  // At its arrival it was no older than it is now.
  const newestAgeMs = Math.min(run.newestAgeMs, Math.max(0, at.nowTs - newestT));
  return { ...run, sinceT, newestT, newestAgeMs, due };
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
