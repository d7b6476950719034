import type { EventName } from '../contract/event.ts';
import type { Measurement } from '../contract/values.ts';
import type {
  CauseReader,
  CompiledCause,
  Evaluated,
  LiveEvent,
  Moment,
  Profile,
  Timed,
} from './compile.ts';
import { notBegun } from './begin.ts';
import {
  collect,
  deferInto,
  type Deferred,
  type EvidenceDraft,
  firingCauses,
  type GivenValue,
  isComplete,
  isSpent,
} from './evidence.ts';
import { costOfFiring, EvaluationState, fire, leadOn, leave } from './fire.ts';
import { type Listening, storable } from './last-seen.ts';
import {
  ageOf,
  type Agreed,
  type CauseEvidence,
  type CauseTime,
  type EventEvidence,
  type Runtime,
} from './runtime.ts';
import {
  collectTimed,
  dropOld,
  dueTsOf,
  inOrder,
  isWaiting,
  type Tick,
  ticksOf,
  timeOf,
  withTime,
} from './timed.ts';
import type { WallMs } from '../lib/clock-readings.ts';

const none: CauseReader[] = [];
/** Usually no episode ended, and all outcomes share this list. */
const noneEnded: EventName[] = [];

/**
 * Evaluates measurements of one device one after the other, starting from a runtime, which it does not change. A
 * measurement costs the live causes that read its sense. Changed evidence is copied once for all measurements.
 */
export class Evaluator {
  readonly #profile: Profile;
  readonly #live: EvaluationState;
  /** Null if no cause has time members. */
  readonly #ticker: Ticker | null;
  #cost = 0;

  constructor(profile: Profile, runtime: Runtime, listening?: Listening) {
    this.#profile = profile;
    this.#live = new EvaluationState(profile, runtime);
    this.#ticker = profile.isTimed ? new Ticker(profile, this.#live, listening) : null;
  }

  /**
   * Runs what is due at `untilTs`, in order, and returns each tick that fires. States may move the device on for
   * ever, so it stops after `mostMoves` moves. If the last tick moved the device, more may be due; call it again.
   */
  ticksUntil(untilTs: number, mostMoves = Infinity): Evaluated[] {
    return this.#ticker?.runUntil(untilTs, mostMoves) ?? noTicks;
  }

  /**
   * Runs what is due before a measurement of that sense and time; call it before `measure`. These ticks arrive with
   * the measurement.
   */
  ticksForcedBy(sId: string, moment: Moment): Evaluated[] {
    return this.#ticker?.runForcedBy(sId, moment) ?? noTicks;
  }

  /** When the next tick is due; null if nothing waits. */
  nextDueTs(): number | null {
    return this.#ticker?.nextDueTs() ?? null;
  }

  /**
   * Evaluates one measurement that was not evaluated before (`newestAfter`). Tries events in order, those of the
   * current state first, then those of the global states. The first one that moves the device ends it. Reports
   * firings of silent events (`LiveEvent`) only if `givesAll`.
   */
  measure({ sId, val, ts }: Measurement, moment: Moment, givesAll: boolean): Evaluated {
    const live = this.#live;
    const own = live.state?.causesBySense.get(sId);
    const global = live.purpose?.globalCausesBySense.get(sId);
    const outcome: Evaluated = { firings: [], ended: noneEnded, arrivedTs: moment.arrivedTs };
    if (!own && !global) return outcome;
    const given: GivenValue = { val, moment, once: agreedOnce({ val, ts }) };
    // A global state's own events keep their evidence with the other global ones.
    const ownDeferred = live.state?.isGlobal ? live.globalDeferred : live.localDeferred;
    let at = own ? this.#offerAll(own, given, givesAll, outcome, ownDeferred, null) : -1;
    if (at < 0 && global) {
      at = this.#offerAll(global, given, givesAll, outcome, live.globalDeferred, live.place.stId);
      if (at >= 0) at += own?.length ?? 0;
    }
    if (at >= 0) {
      const mover = { own: own ?? none, global: global ?? none, at };
      this.#cost += leave(live, mover, given, outcome);
    } else if (live.ended.length > 0) {
      live.tellEnded(outcome);
    }
    return outcome;
  }

  /** The cost so far, in causes that judged a measurement and did not change (`CompiledCause`). */
  get cost(): number {
    return this.#cost + (this.#ticker?.cost ?? 0);
  }

  /** Where the device is now, with its evidence; the very object that was given if nothing changed. */
  end(): Runtime {
    return this.#live.end();
  }

  /** The index of the reader whose event moved the device; -1: none did. Skips events of the state `except`. */
  #offerAll(
    readers: CauseReader[],
    given: GivenValue,
    givesAll: boolean,
    outcome: Evaluated,
    all: Deferred,
    except: number | null,
  ): number {
    const live = this.#live;
    const draft = all === live.localDeferred ? live.local : live.global;
    const deferred = deferInto(readers, all, given, draft);
    for (let index = 0; index < readers.length; index++) {
      const reader = readers[index] as CauseReader;
      if (reader.event.stId === except) continue;
      if (deferred?.defers(index, draft)) {
        this.#cost += reader.cost;
        continue;
      }
      if (this.#offer(reader, draft, given, givesAll, outcome)) return index;
      deferred?.offered(index, draft);
    }
    deferred?.endOffer();
    return -1;
  }

  /** Whether the event moves the device. */
  #offer(
    reader: CauseReader,
    draft: EvidenceDraft,
    given: GivenValue,
    givesAll: boolean,
    outcome: Evaluated,
  ): boolean {
    const { event } = reader;
    if (!givesAll && event.isSpentAtOnce && isSpent(reader, draft, given.val)) {
      this.#cost += reader.cost + 1;
      return this.#leadsOn(event, given.moment.t, outcome);
    }
    const { moment } = given;
    const evidence = event.isTimed
      ? collectTimed(reader, draft, given, false)
      : collect(reader, draft, given, false);
    this.#cost += evidence ? reader.cost + reader.costOfChange : reader.cost;
    // Stored evidence never completes a group that reads this sense: it would have fired and been used up.
    const { groups: among } = reader;
    if (!evidence || !isComplete(event, evidence, among)) return false;
    this.#cost += costOfFiring * (1 + event.causes.length);
    const ts = event.isTimed ? timeOf(reader, evidence, moment.t) : moment.t;
    const { arrivedTs: nowTs } = moment;
    const isGiven = givesAll || !event.isSilent;
    const at = { ts, nowTs, ageMs: ageOf(moment), isGiven, among };
    fire(this.#profile, this.#live, event, evidence, at, outcome);
    return this.#leadsOn(event, ts, outcome);
  }

  #leadsOn(event: LiveEvent, ts: number, outcome: Evaluated): boolean {
    return leadOn(this.#profile, this.#live, event, ts, outcome) !== null;
  }
}

/**
 * What a measurement makes of a window of one outcome if it agrees; it is then evidence, in the form that is stored.
 */
function agreedOnce({ val, ts }: Agreed): CauseEvidence {
  // Negative zero would not survive JSON.
  const agreed = { val: typeof val === 'number' ? val + 0 : storable(val), ts };
  const baseline = undefined;
  const begun = notBegun;
  return { of: 1, matched: 1, bits: 1, words: null, ahead: 0, leaving: 0, baseline, agreed, begun };
}

const noTicks: Evaluated[] = [];
/** The cost of a waiting event's cause, which is checked, and restarted after a move. */
const costOfWaiting = 6;
const alwaysListening: Listening = { gaps: [] };

/** Runs a device's ticks, beside the measurements that its evaluator takes. */
class Ticker {
  readonly #profile: Profile;
  readonly #live: EvaluationState;
  readonly #listening: Listening;
  /** The latest time it has been given. */
  #nowTs = -Infinity;
  /** The cost so far, as in `Evaluator`. */
  cost = 0;

  constructor(profile: Profile, live: EvaluationState, listening: Listening = alwaysListening) {
    this.#profile = profile;
    this.#live = live;
    this.#listening = listening;
  }

  /** Runs ticks that are due at `untilTs`, by due time: all, or up to that many moves of the device. */
  runUntil(untilTs: number, mostMoves: number): Evaluated[] {
    const { state, purpose } = this.#live;
    if (!state?.timed.ticking.length && !purpose?.globalTimed.ticking.length) return noTicks;
    this.#nowTs = Math.max(this.#nowTs, untilTs);
    const dueTs = this.nextDueTs();
    if (dueTs === null || dueTs > untilTs) return noTicks;
    return this.#runAll(() => this.#listWaiting().filter(({ ts }) => ts <= untilTs), mostMoves);
  }

  /** Runs ticks that a measurement of that sense forces. They arrive with it. */
  runForcedBy(sId: string, { t, arrivedTs }: Moment): Evaluated[] {
    const { state, purpose } = this.#live;
    const isAny =
      this.#isAnyForced(state?.timed.withRuns.get(sId), sId, t) ||
      this.#isAnyForced(purpose?.globalTimed.withRuns.get(sId), sId, t);
    return isAny ? this.#runForcedBy(sId, t, arrivedTs) : noTicks;
  }

  #runForcedBy(sId: string, t: number, arrivedTs: WallMs): Evaluated[] {
    return this.#runAll(() =>
      this.#listOf(({ withRuns }) => withRuns.get(sId) ?? [])
        .filter(({ event: { causes }, index, t: completeT }) => {
          const cause = causes[index];
          return cause?.sId === sId && cause.time?.forMs !== null && completeT < t;
        })
        .map((tick) => ({ ...tick, ts: arrivedTs })),
    );
  }

  /** When the next one is due; null if nothing waits. Most measurements ask this, so it makes no list. */
  nextDueTs(): number | null {
    const { state, purpose } = this.#live;
    const own = this.#earliestOf(state?.timed.ticking, null);
    const global = this.#earliestOf(purpose?.globalTimed.ticking, this.#live.place.stId);
    const earliest = Math.min(own, global);
    return earliest === Infinity ? null : earliest;
  }

  /** Infinity: none waits. Skips events of the state `except`. */
  #earliestOf(events: LiveEvent[] | undefined, except: number | null): number {
    let earliest = Infinity;
    if (!events) return earliest;
    for (const event of events) {
      if (event.stId === except) continue;
      const { causes } = event;
      this.cost += costOfWaiting * causes.length;
      const times = this.#live.draftOf(event).get(event.index)?.time?.causes;
      if (!times) continue;
      for (let at = 0; at < causes.length; at += 1) {
        const ts = dueTsOf(causes[at] as CompiledCause, times[at], this.#listening, this.#nowTs);
        if (ts < earliest) earliest = ts;
      }
    }
    return earliest;
  }

  /** Whether a measurement of that sense at `t` comes after the end of a run. It may not count: see `runForcedBy`. */
  #isAnyForced(events: LiveEvent[] | undefined, sId: string, t: number): boolean {
    if (!events) return false;
    for (const event of events) {
      const { causes } = event;
      const times = this.#live.draftOf(event).get(event.index)?.time?.causes;
      if (!times) continue;
      for (let at = 0; at < causes.length; at += 1) {
        const run = times[at]?.run;
        if (run?.due && !run.isComplete && run.due.t < t && causes[at]?.sId === sId) return true;
      }
    }
    return false;
  }

  #listWaiting(): Tick[] {
    return this.#listOf(({ ticking }) => ticking);
  }

  /** In the order in which events and causes are tried. */
  #listOf(eventsOf: (timed: Timed) => LiveEvent[]): Tick[] {
    const { state, purpose, place } = this.#live;
    const own = state ? eventsOf(state.timed) : [];
    const global = purpose ? eventsOf(purpose.globalTimed) : [];
    const known = { listening: this.#listening, nowTs: this.#nowTs };
    const elsewhere = global.filter(({ stId }) => stId !== place.stId);
    return [...own, ...elsewhere].flatMap((event) => {
      this.cost += costOfWaiting * event.causes.length;
      return ticksOf(event, this.#live.draftOf(event).get(event.index), known);
    });
  }

  /** A move ends the evidence that was waiting and starts other evidence, so the list is made anew. */
  #runAll(list: () => Tick[], mostMoves = Infinity): Evaluated[] {
    const all: Evaluated[] = [];
    let hasMoved = true;
    for (let moves = 0; hasMoved && moves < mostMoves; moves += 1) {
      hasMoved = false;
      for (const tick of inOrder(list())) {
        if (!isWaiting(tick, this.#live.draftOf(tick.event).get(tick.event.index))) continue;
        const outcome = this.#run(tick);
        if (outcome.firings.length > 0) all.push(outcome);
        hasMoved = outcome.transition !== undefined;
        if (hasMoved) break;
      }
    }
    return all;
  }

  #run(tick: Tick): Evaluated {
    const { event, ts: arrivedTs } = tick;
    const live = this.#live;
    const outcome: Evaluated = { firings: [], ended: [], arrivedTs };
    const { evidence, ageMs } = runTick(tick, live.draftOf(event));
    const among = 1 << (event.causes[tick.index]?.group ?? 0);
    if (!isComplete(event, evidence, among)) return outcome;
    this.cost += costOfFiring * (1 + event.causes.length);
    const { ts, nowTs } = firingTime(tick, evidence, among);
    const at = { ts, nowTs, ageMs, isGiven: true, among };
    fire(this.#profile, live, event, evidence, at, outcome);
    const target = leadOn(this.#profile, live, event, ts, outcome);
    if (target) live.enter(target.place, target.entersPurpose, arrivedTs);
    return outcome;
  }
}

/**
 * Makes a cause hold by its tick, unless its evidence has become too old by then. Returns the event's evidence, which
 * is the draft's own, and how old the newest measurement of the cause was when it arrived.
 */
function runTick(
  { event, index, t }: Tick,
  draft: EvidenceDraft,
): { evidence: EventEvidence; ageMs: number } {
  const own = draft.open(event);
  dropOld(event, draft, own, t);
  const { newestT = null, causes = [] } = own.time ?? {};
  const completed = causes.map((time, at) => (at === index && time ? complete(time, t) : time));
  const evidence = withTime(event, own, { newestT, causes: completed });
  return { evidence, ageMs: causes[index]?.run?.newestAgeMs ?? 0 };
}

function complete(time: CauseTime, t: number): CauseTime {
  if (time.run) return { ...time, run: { ...time.run, isComplete: true } };
  return time.silence ? { ...time, silence: { ...time.silence, completeTs: t } } : time;
}

/**
 * The time of a firing by a tick: when it was complete, or the time of the newest measurement that agreed if that is
 * later. `nowTs`: when it fires by the service's clock. For a silence both are when it was complete.
 */
function firingTime(
  { event, index, t, ts: dueTs }: Tick,
  evidence: EventEvidence,
  among: number,
): { ts: number; nowTs: WallMs } {
  if (hasSilence(event, index)) return { ts: t, nowTs: t };
  const { causes, time } = evidence;
  const agreed = firingCauses(event, evidence, among).map((at) =>
    causes[at]?.agreed ? (time?.causes[at]?.agreedT ?? t) : t,
  );
  return { ts: Math.max(t, ...agreed), nowTs: dueTs };
}

const hasSilence = ({ causes }: LiveEvent, index: number) =>
  (causes[index]?.time?.noneForMs ?? null) !== null;

/** `runtime` is the object that was given if the evidence did not change. */
type Evaluation = { runtime: Runtime } & Evaluated;

/**
 * Evaluates one measurement that was not evaluated before (`newestAfter`), without running ticks. A pure function: it
 * changes none of its arguments. For several measurements of one device, `Evaluator` is cheaper.
 */
export function evaluate(
  profile: Profile,
  runtime: Runtime,
  measurement: Measurement,
  moment: Moment = { t: measurement.ts, arrivedTs: measurement.ts },
): Evaluation {
  const evaluator = new Evaluator(profile, runtime);
  const outcome = evaluator.measure(measurement, moment, true);
  return { runtime: evaluator.end(), ...outcome };
}
