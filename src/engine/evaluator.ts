import type { EventName } from '../contract/event.ts';
import type { Measurement } from '../contract/values.ts';
import type { CauseReader, Evaluated, LiveEvent, Moment, Profile, Timed } from './compile.ts';
import {
  collect,
  deferInto,
  type Deferred,
  isComplete,
  isSpent,
  EvaluationState,
} from './evidence.ts';
import { costOfFiring, fire, leadOn, leave } from './fire.ts';
import { type Listening, storable } from './last-seen.ts';
import { ageOf, type CauseTime, type EventEvidence, type Runtime } from './runtime.ts';
import {
  collectTimed,
  dropOld,
  inOrder,
  isWaiting,
  type Tick,
  ticksOf,
  timeOf,
  withTime,
} from './timed.ts';
import { agreedOnce, type EvidenceDraft, type GivenValue } from './window.ts';
import type { WallMs } from '../lib/clock-readings.ts';

const none: CauseReader[] = [];
/** Mostly none ended: then all outcomes have this one. */
const noneEnded: EventName[] = [];

/**
 * Evaluates measurements of one device one after the other, from a runtime on, which stays as it is. One
 * costs the live causes that read its sense; what it changes is copied once for all of them.
 */
export class Evaluator {
  readonly #profile: Profile;
  readonly #live: EvaluationState;
  /** Null where no cause has members of time. */
  readonly #ticker: Ticker | null;
  #cost = 0;

  constructor(profile: Profile, runtime: Runtime, listening?: Listening) {
    this.#profile = profile;
    this.#live = new EvaluationState(profile, runtime);
    this.#ticker = profile.isTimed ? new Ticker(profile, this.#live, listening) : null;
  }

  /**
   * Runs what is due by then, in order: each tick that fires. States may send the device on for ever: it ends after
   * so many moves. Where the last tick moved the device there may be more, which a further call runs.
   */
  ticksUntil(untilTs: number, mostMoves = Infinity): Evaluated[] {
    return this.#ticker?.runUntil(untilTs, mostMoves) ?? noTicks;
  }

  /**
   * Runs what is due before a measurement of that sense that is taken then: to be called before `measure`. It
   * arrives with that measurement.
   */
  ticksForcedBy(sId: string, moment: Moment): Evaluated[] {
    return this.#ticker?.runForcedBy(sId, moment) ?? noTicks;
  }

  /** When the next tick is due; null: nothing waits. */
  nextDueTs(): number | null {
    return this.#ticker?.nextDueTs() ?? null;
  }

  /**
   * Evaluates one measurement that was not evaluated before (`newestAfter`). Events are tried in order, those of the current
   * state first, then those of the global states; the first one that moves the device ends it. Of
   * events that are silent (`LiveEvent`) it gives the firings only if it is asked for all.
   */
  measure({ sId, val, ts }: Measurement, moment: Moment, givesAll: boolean): Evaluated {
    const live = this.#live;
    const own = live.state?.causesBySense.get(sId);
    const global = live.purpose?.globalCausesBySense.get(sId);
    const outcome: Evaluated = { firings: [], ended: noneEnded, arrivedTs: moment.arrivedTs };
    if (!own && !global) return outcome;
    const given: GivenValue = { val, moment, once: agreedOnce({ val: storable(val), ts }) };
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

  /** What it has taken so far, in causes that judged a measurement and stayed as they were (`CompiledCause`). */
  get cost(): number {
    return this.#cost + (this.#ticker?.cost ?? 0);
  }

  /** Where the device stands now, with its evidence; the very object it began with if that is as it was. */
  end(): Runtime {
    return this.#live.end();
  }

  /** Which of the readers' events has moved the device; -1: none. Those of the state `except` are not offered it. */
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
    const { val, once, moment } = given;
    const evidence = event.isTimed
      ? collectTimed(reader, draft, given, false)
      : collect(reader, draft, val, once, false);
    this.#cost += evidence ? reader.cost + reader.costOfChange : reader.cost;
    // What is kept never holds as a whole: it would have fired, and been used up.
    if (!evidence || !isComplete(event, evidence)) return false;
    this.#cost += costOfFiring * (1 + event.causes.length);
    const ts = event.isTimed ? timeOf(reader, evidence, moment.t) : moment.t;
    const { arrivedTs: nowTs } = moment;
    const at = { ts, nowTs, ageMs: ageOf(moment), isGiven: givesAll || !event.isSilent };
    fire(this.#profile, this.#live, event, evidence, at, outcome);
    return this.#leadsOn(event, ts, outcome);
  }

  #leadsOn(event: LiveEvent, ts: number, outcome: Evaluated): boolean {
    return leadOn(this.#profile, this.#live, event, ts, outcome) !== null;
  }
}

const noTicks: Evaluated[] = [];
/** What a cause of an event that waits takes, beside one that judges: it is looked at, and begun anew after a move. */
const costOfWaiting = 6;
const alwaysListening: Listening = { gaps: [] };

/** Runs the ticks of a device, beside the measurements that its evaluator takes. */
class Ticker {
  readonly #profile: Profile;
  readonly #live: EvaluationState;
  readonly #listening: Listening;
  /** The latest time that it was told of. */
  #nowTs = -Infinity;
  /** What it has taken, as of `Evaluator`. */
  cost = 0;

  constructor(profile: Profile, live: EvaluationState, listening: Listening = alwaysListening) {
    this.#profile = profile;
    this.#live = live;
    this.#listening = listening;
  }

  /** Those that are due by then, by when they are due: all, or up to this move of the device. */
  runUntil(untilTs: number, mostMoves: number): Evaluated[] {
    const { state, purpose } = this.#live;
    if (!state?.timed.ticking.length && !purpose?.globalTimed.ticking.length) return noTicks;
    this.#nowTs = Math.max(this.#nowTs, untilTs);
    return this.#runAll(() => this.#listWaiting().filter(({ ts }) => ts <= untilTs), mostMoves);
  }

  /** Those that a measurement of that sense forces. They arrive with it. */
  runForcedBy(sId: string, { t, arrivedTs }: Moment): Evaluated[] {
    const { state, purpose } = this.#live;
    if (!state?.timed.withRuns.has(sId) && !purpose?.globalTimed.withRuns.has(sId)) return noTicks;
    return this.#runAll(() =>
      this.#listOf(({ withRuns }) => withRuns.get(sId) ?? [])
        .filter(({ event: { causes }, index, t: completeT }) => {
          const cause = causes[index];
          return cause?.sId === sId && cause.time?.forMs !== null && completeT < t;
        })
        .map((tick) => ({ ...tick, ts: arrivedTs })),
    );
  }

  /** When the next one is due; null: nothing waits. */
  nextDueTs(): number | null {
    let next: number | null = null;
    for (const { ts } of this.#listWaiting()) if (next === null || ts < next) next = ts;
    return next;
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

  /** A move ends the evidence of what waited, and begins other. */
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
    if (!isComplete(event, evidence)) return outcome;
    this.cost += costOfFiring * (1 + event.causes.length);
    const { ts, nowTs } = firingTime(tick, evidence);
    fire(this.#profile, live, event, evidence, { ts, nowTs, ageMs, isGiven: true }, outcome);
    const target = leadOn(this.#profile, live, event, ts, outcome);
    if (target) live.enter(target.place, target.entersPurpose, arrivedTs);
    return outcome;
  }
}

/**
 * A cause comes to hold by its tick, unless what it held for has become too old by then. Gives what its event has
 * then, which is the draft's own, and how old the newest measurement of the cause was at its arrival.
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
 * The time of a firing by a tick: when it was complete, or when the newest measurement that agreed was taken, if later; and
 * when it fires by the service's clock. A silence has one time for both, when it was complete.
 */
function firingTime(
  { event, index, t, ts: dueTs }: Tick,
  { causes, time }: EventEvidence,
): { ts: number; nowTs: WallMs } {
  if (hasSilence(event, index)) return { ts: t, nowTs: t };
  const agreed = causes.map((collected, at) =>
    collected?.agreed ? (time?.causes[at]?.agreedT ?? t) : t,
  );
  return { ts: Math.max(t, ...agreed), nowTs: dueTs };
}

const hasSilence = ({ causes }: LiveEvent, index: number) =>
  (causes[index]?.time?.noneForMs ?? null) !== null;

/** `runtime` is the object that was given where the evidence did not change. */
type Evaluation = { runtime: Runtime } & Evaluated;

/**
 * Evaluates one measurement that was not evaluated before (`newestAfter`), and none of the ticks before it: a pure
 * function of its arguments, none of which it changes. Several of one device are cheaper in one go: `Evaluator`.
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
