import { collect, isComplete, isSpent } from './collect-evidence.ts';
import { collectTimed, timeOf } from './collect-timed.ts';
import type { Profile } from './compile.ts';
import type { CauseReader } from './readers.ts';
import type { LiveEvent } from './compile-event.ts';
import type { Draft } from './draft.ts';
import type { EventName } from '../contract/event.ts';
import type { Measurement } from '../contract/measurement.ts';
import { costOfFiring, fire, leadOn } from './fire.ts';
import type { GivenValue } from './given.ts';
import { leave } from './leave.ts';
import { LiveEvidence } from './live-evidence.ts';
import type { Listening } from './listening.ts';
import type { Evaluated, Moment } from './outcome.ts';
import { ageOf } from './run.ts';
import { deferInto, type Deferred } from './evidence.ts';
import type { Runtime } from './runtime.ts';
import { storable } from './last-seen.ts';
import { noTicks, Ticker } from './ticker.ts';
import { agreedOnce } from './window.ts';

const none: CauseReader[] = [];
/** Mostly none ended: then all outcomes have this one. */
const noneEnded: EventName[] = [];

/**
 * Evaluates measurements of one device one after the other, from a runtime on, which stays as it is. One
 * costs the live causes that read its sense; what it changes is copied once for all of them.
 */
export class Evaluator {
  readonly #profile: Profile;
  readonly #live: LiveEvidence;
  /** Null where no cause has members of time. */
  readonly #ticker: Ticker | null;
  #cost = 0;

  constructor(profile: Profile, runtime: Runtime, listening?: Listening) {
    this.#profile = profile;
    this.#live = new LiveEvidence(profile, runtime);
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
    const own = live.state?.readers.get(sId);
    const global = live.purpose?.globalReaders.get(sId);
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
    draft: Draft,
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
