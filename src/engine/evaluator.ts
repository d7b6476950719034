import { collect, isComplete, isSpent, useUp } from './collect-evidence.ts';
import type { CompiledPurpose, CompiledState, Profile, CauseReader } from './compile.ts';
import type { LiveEvent } from './compile-event.ts';
import { Draft } from './draft.ts';
import { deviceEventOf, senseEventOf } from './build-event.ts';
import type { Origin } from './build-event.ts';
import type { EventName } from '../contract/event.ts';
import type { Measurement } from '../contract/measurement.ts';
import type { Place } from '../contract/place.ts';
import type { Listening } from './listening.ts';
import type { Evaluated, Moment } from './outcome.ts';
import { RunAhead } from './run-ahead.ts';
import { hasPlace, noEvidence } from './runtime.ts';
import type { CauseEvidence, Runtime } from './runtime.ts';
import { storable } from './last-seen.ts';
import { agreedOnce } from './window.ts';

/** A measurement, and what it makes of a window of one where it agrees: all causes that it meets have this object. */
type Given = Pick<Measurement, 'val'> & { moment: Moment; once: CauseEvidence };

const noTicks: readonly Evaluated[] = [];

/** What a cause of an event that fires takes, beside one that judges and stays as it is. */
const costOfFiring = 5;

/**
 * Evaluates measurements of one device one after the other, from a runtime on, which stays as it is. One
 * costs the live causes that read its sense; what it changes is copied once for all of them.
 */
export class Evaluator {
  readonly #profile: Profile;
  readonly #base: Runtime;
  #place: Place;
  #purpose: CompiledPurpose | undefined;
  #state: CompiledState | undefined;
  #local: Draft;
  #global: Draft;
  readonly #localRuns = new Map<CauseReader[], RunAhead>();
  readonly #globalRuns = new Map<CauseReader[], RunAhead>();
  #cost = 0;

  constructor(profile: Profile, runtime: Runtime, _listening?: Listening) {
    this.#profile = profile;
    this.#base = runtime;
    this.#place = runtime;
    this.#purpose = profile.purposes.get(runtime.puId);
    this.#state = this.#purpose?.states.get(runtime.stId);
    this.#local = new Draft(runtime.local);
    this.#global = new Draft(runtime.global);
  }

  /** Runs what is due by then, in order: each that leads to something. */
  ticksUntil(_untilTs: number): readonly Evaluated[] {
    return noTicks;
  }

  /** Runs what is due before a measurement of that sense that is taken then: to be called before `measure`. */
  ticksForcedBy(_sId: string, _moment: Moment): readonly Evaluated[] {
    return noTicks;
  }

  /** When the next tick is due; null: nothing waits. */
  nextDueTs(): number | null {
    return null;
  }

  /**
   * Evaluates one measurement that was not evaluated before (`newestAfter`). Events are tried in order, those of the current
   * state first, then those of the global states; the first one that moves the device ends it. Of
   * events that are silent (`LiveEvent`) it gives the firings only if it is asked for all.
   */
  measure({ sId, val, ts }: Measurement, moment: Moment, givesAll: boolean): Evaluated {
    const own = this.#state?.readers.get(sId);
    const global = this.#purpose?.globalReaders.get(sId);
    const outcome: Evaluated = { firings: [], ended: [], arrivedTs: moment.arrivedTs };
    if (!own && !global) return outcome;
    const given: Given = { val, moment, once: agreedOnce({ val: storable(val), ts }) };
    const { stId } = this.#place;
    // A global state's own events keep their evidence with the other global ones.
    const ownRuns = this.#state?.isGlobal ? this.#globalRuns : this.#localRuns;
    if (own && this.#offerAll(own, given, givesAll, outcome, ownRuns, null)) return outcome;
    if (global) this.#offerAll(global, given, givesAll, outcome, this.#globalRuns, stId);
    return outcome;
  }

  /** Whether one of the readers' events has moved the device. Those of the state `except` are not offered it. */
  #offerAll(
    readers: CauseReader[],
    given: Given,
    givesAll: boolean,
    outcome: Evaluated,
    runs: Map<CauseReader[], RunAhead>,
    except: number | null,
  ): boolean {
    const draft = runs === this.#localRuns ? this.#local : this.#global;
    const run = this.#runOf(readers, runs, given, draft);
    for (let index = 0; index < readers.length; index++) {
      const reader = readers[index] as CauseReader;
      if (reader.event.stId === except) continue;
      if (run?.isAhead(index, draft)) {
        this.#cost += reader.cost;
        continue;
      }
      if (this.#offer(reader, given, givesAll, outcome)) return true;
      run?.offered(index, draft);
    }
    run?.endOffer();
    return false;
  }

  /** With the number in it; null where no reader takes many at once, or it is no number. */
  #runOf(
    readers: CauseReader[],
    runs: Map<CauseReader[], RunAhead>,
    { val, once }: Given,
    draft: Draft,
  ): RunAhead | null {
    let run = runs.get(readers);
    if (typeof val !== 'number') {
      // `isAny` agrees with positions too.
      run?.end(draft);
      runs.delete(readers);
      return null;
    }
    if (!run) {
      if (!readers.some(({ isLong, isNewestOnly }) => isLong || isNewestOnly)) return null;
      runs.set(readers, (run = new RunAhead(readers)));
    }
    run.push(val, once);
    return run;
  }

  /** What it has taken so far, in causes that judged a measurement and stayed as they were (`CompiledCause`). */
  get cost(): number {
    return this.#cost;
  }

  /** Where the device stands now, with its evidence; the very object it began with if that is as it was. */
  end(): Runtime {
    for (const run of this.#localRuns.values()) run.end(this.#local);
    for (const run of this.#globalRuns.values()) run.end(this.#global);
    const [local, global] = [this.#local.end(), this.#global.end()];
    const base = this.#base;
    if (this.#place === base && local === base.local && global === base.global) return base;
    const { puId, stId } = this.#place;
    return { puId, stId, local, global };
  }

  /** Whether the event has moved the device. */
  #offer(
    reader: CauseReader,
    { val, moment, once }: Given,
    givesAll: boolean,
    outcome: Evaluated,
  ): boolean {
    const { event } = reader;
    const { t } = moment;
    const draft = event.isGlobal ? this.#global : this.#local;
    if (!givesAll && isSpent(reader, draft, val)) {
      this.#cost += reader.cost + 1;
      return this.#move(event, t, outcome);
    }
    const wasInEpisode = event.hasEpisodes && draft.get(event.index)?.isInEpisode === true;
    const evidence = collect(reader, draft, val, once);
    if (wasInEpisode && evidence?.isInEpisode === false) outcome.ended.push(this.#nameOf(event));
    this.#cost += evidence ? reader.cost + reader.costOfChange : reader.cost;
    // What is kept never holds as a whole: it would have fired, and been used up.
    if (!evidence || !isComplete(event, evidence)) return false;
    this.#cost += costOfFiring * (1 + event.causes.length);
    if (givesAll || !event.isSilent) {
      const found = senseEventOf(this.#originOf(event, t), evidence);
      const isFirst = !evidence.isInEpisode;
      const { name, record, actions, tells } = event;
      const ageMs = Math.max(0, moment.arrivedTs - t);
      outcome.firings.push({ event: found, name, record, actions, tells, isFirst, ageMs });
    }
    draft.set(event.index, useUp(event, evidence));
    return this.#move(event, t, outcome);
  }

  /** Where an event that fired moves the device, if anywhere. */
  #move(event: LiveEvent, ts: number, outcome: Evaluated): boolean {
    if (!event.target || !hasPlace(this.#profile, event.target.place)) return false;
    const { place: to, entersPurpose } = event.target;
    const moved = deviceEventOf(this.#originOf(event, ts), this.#place, to);
    outcome.transition = moved ? { to, event: moved } : { to };
    this.#enter(to, entersPurpose);
    return true;
  }

  #originOf(event: LiveEvent, ts: number): Origin {
    return { pId: this.#profile.pId, puId: this.#place.puId, event, ts };
  }

  #nameOf({ stId, evId }: LiveEvent): EventName {
    return { puId: this.#place.puId, stId, evId };
  }

  #enter(place: Place, entersPurpose: boolean): void {
    this.#place = place;
    this.#purpose = this.#profile.purposes.get(place.puId);
    this.#state = this.#purpose?.states.get(place.stId);
    this.#local = new Draft(noEvidence);
    this.#localRuns.clear();
    // Which global events are offered a number depends on the state.
    if (!entersPurpose) for (const run of this.#globalRuns.values()) run.end(this.#global);
    this.#globalRuns.clear();
    if (entersPurpose) this.#global = new Draft(noEvidence);
  }
}
