import { isComplete } from './collect-evidence.ts';
import type { LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import { costOfFiring, fire, leadOn } from './fire.ts';
import type { LiveEvidence } from './live-evidence.ts';
import type { Listening } from './listening.ts';
import type { Evaluated, Moment } from './outcome.ts';
import { firingTime, runTick } from './run-tick.ts';
import { inOrder, isWaiting, ticksOf } from './ticks.ts';
import type { Tick } from './ticks.ts';
import type { Timed } from './timed.ts';

export const noTicks: Evaluated[] = [];
/** What a cause of an event that waits takes, beside one that judges: it is looked at, and begun anew after a move. */
const costOfWaiting = 6;
const alwaysListening: Listening = { gaps: [] };

/** Runs the ticks of a device, beside the measurements that its evaluator takes. */
export class Ticker {
  readonly #profile: Profile;
  readonly #live: LiveEvidence;
  readonly #listening: Listening;
  /** The latest time that it was told of. */
  #nowTs = -Infinity;
  /** What it has taken, as of `Evaluator`. */
  cost = 0;

  constructor(profile: Profile, live: LiveEvidence, listening: Listening = alwaysListening) {
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
