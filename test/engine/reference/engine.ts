import type { EventName } from '../../../src/contract/event.ts';
import type { Measurement } from '../../../src/contract/measurement.ts';
import type { Place } from '../../../src/contract/place.ts';
import type { Cause, Purpose, PurposeEvent } from '../../../src/contract/purpose.ts';
import type { Evaluated, Moment } from '../../../src/engine/outcome.ts';
import { holds } from './collected.ts';
import { dueOf, lookAgainTs, type Due, type Gap } from './due.ts';
import { hasEpisode } from './episode.ts';
import { firingOf, movedOf } from './firing.ts';
import { judge } from './judge.ts';
import { timeIn, type Log } from './log.ts';
import { tellsOf } from './tells.ts';
import { newestAgreed } from './told.ts';

/** A live event with the purpose and the number of the state that hold it. */
export type Live = {
  purpose: Purpose;
  stId: number;
  isGlobal: boolean;
  event: PurposeEvent;
  causes: Cause[];
};

type Waiting = Due & { live: Live; index: number };

/**
 * The purpose engine as the documents word it, and no more: every measurement is offered to every cause
 * of every live event, all that happened is kept, and everything is computed from the whole of it. What
 * the service's engine does at less cost has to come to the same.
 */
export class ReferenceEngine {
  readonly #purposes: Purpose[];
  readonly #gaps: readonly Gap[];
  puId: number;
  stId: number;
  /** When the state, and when the purpose was entered. */
  #enteredTs: { local: number; global: number };
  /** By `stId/evId`. */
  #local = new Map<string, Log>();
  #global = new Map<string, Log>();

  constructor(purposes: Purpose[], arrivedTs = 0, gaps: readonly Gap[] = []) {
    this.#purposes = purposes;
    this.#gaps = gaps;
    this.#enteredTs = { local: arrivedTs, global: arrivedTs };
    this.puId = purposes[0]?.puId ?? 0;
    this.stId = purposes[0]?.initStId ?? 0;
  }

  get place(): Place {
    return { puId: this.puId, stId: this.stId };
  }

  /** Of a measurement that is evaluated. What it forces comes first. */
  measure(measurement: Measurement, moment: Moment): Evaluated {
    const { arrivedTs } = moment;
    const outcomes: Evaluated = { firings: [], ended: [], arrivedTs };
    const live = this.live();
    for (const [position, one] of live.entries()) {
      const t = this.#take(one, measurement, moment, false, outcomes);
      if (t === null || !this.#holdsAll(one)) continue;
      const to = this.#targetOf(one);
      this.#fire(one, t, { ageMs: Math.max(0, arrivedTs - moment.t) }, outcomes);
      if (!to) continue;
      for (const later of live.slice(position + 1)) {
        if (this.#stays(later, to)) this.#take(later, measurement, moment, true, outcomes);
      }
      this.#move(one, to, t, outcomes);
      break;
    }
    return outcomes;
  }

  /** Runs what is due until then, by R. */
  ticksUntil(untilTs: number): Evaluated[] {
    const next = () =>
      this.#waiting()
        .filter(({ r }) => r <= untilTs)
        .toSorted((one, other) => one.r - other.r || one.d - other.d);
    return this.#runAll(next);
  }

  /** Runs what a measurement of that sense forces, by d. */
  ticksForcedBy(sId: string, { t, arrivedTs }: Moment): Evaluated[] {
    const next = () =>
      this.#waiting()
        .filter(({ live, index }) => live.causes[index]?.sId === sId)
        .filter(({ live, index }) => live.causes[index]?.threshold?.forMs !== undefined)
        .filter(({ d }) => d < t)
        .map((waiting) => ({ ...waiting, r: Math.min(waiting.r, arrivedTs) }))
        .toSorted((one, other) => one.d - other.d);
    return this.#runAll(next);
  }

  /** The earliest R that waits. */
  nextDueTs(): number | null {
    const times = this.live().flatMap((live) =>
      live.causes.map((cause, index) => lookAgainTs(this.logOf(live), cause, index, this.#gaps)),
    );
    const earliest = Math.min(...times.map((time) => time ?? Infinity));
    return earliest === Infinity ? null : earliest;
  }

  /** A report of the state that the device is in changes nothing. */
  report(to: Place, arrivedTs: number): void {
    if (to.puId !== this.puId || to.stId !== this.stId) this.#enter(to, arrivedTs);
  }

  /** In the order in which they are tried. */
  live(): Live[] {
    const purpose = this.#purposes.find(({ puId }) => puId === this.puId);
    if (!purpose) return [];
    const own = purpose.states.filter(({ stId }) => stId === this.stId);
    const others = purpose.states.filter(({ stId, isGlobal }) => isGlobal && stId !== this.stId);
    return [...own, ...others].flatMap(({ stId, isGlobal, events }) =>
      events.map((event) => ({ purpose, stId, isGlobal, event, causes: inOrder(event.causes) })),
    );
  }

  logOf({ stId, isGlobal, event }: Live): Log {
    const logs = isGlobal ? this.#global : this.#local;
    const key = `${stId}/${event.evId}`;
    const enteredTs = isGlobal ? this.#enteredTs.global : this.#enteredTs.local;
    const log = logs.get(key) ?? { enteredTs, entries: [] };
    logs.set(key, log);
    return log;
  }

  #runAll(next: () => Waiting[]): Evaluated[] {
    const all: Evaluated[] = [];
    for (let [tick] = next(); tick; [tick] = next()) all.push(this.#tick(tick));
    return all;
  }

  #waiting(): Waiting[] {
    return this.live().flatMap((live) =>
      live.causes.flatMap((cause, index) => {
        const due = dueOf(this.logOf(live), cause, index, this.#gaps);
        return due ? [{ ...due, live, index }] : [];
      }),
    );
  }

  #tick({ live, index, d, r }: Waiting): Evaluated {
    const outcomes: Evaluated = { firings: [], ended: [], arrivedTs: r };
    const log = this.logOf(live);
    const newest = live.causes[index] && newestAgreed(log, live.causes[index], index);
    log.entries.push({ kind: 'tick', cause: index, d });
    if (!this.#holdsAll(live)) return outcomes;
    const times = live.causes.map((cause, i) => newestAgreed(log, cause, i)?.t ?? -Infinity);
    const ts = newest ? Math.max(d, ...times) : d;
    const ageMs = Math.max(0, newest?.ageMs ?? 0);
    const to = this.#targetOf(live);
    this.#fire(live, ts, { ageMs }, outcomes);
    if (to) this.#move(live, to, ts, outcomes);
    return outcomes;
  }

  /** Null where no cause evaluates it; else when it was taken. Only as a disagreement, or in full. */
  #take(
    live: Live,
    measurement: Measurement,
    { t, arrivedTs }: Moment,
    isOnlyDisagreement: boolean,
    { ended }: Evaluated,
  ): number | null {
    const log = this.logOf(live);
    const hadEpisode = this.isInEpisode(live);
    const taken = live.causes.flatMap((cause, index) => {
      if (cause.sId !== measurement.sId) return [];
      const at = timeIn(log, index, t);
      const verdict = judge(log, { cause, index }, measurement.val, at);
      if (verdict === 'none') return [];
      const outcome = verdict === 'uncompared' ? null : verdict;
      if (isOnlyDisagreement && outcome?.agrees !== false) return [];
      const ageMs = arrivedTs - t;
      return [
        { kind: 'taken' as const, cause: index, t: at, arrivedTs, ageMs, measurement, outcome },
      ];
    });
    log.entries.push(...taken);
    if (hadEpisode && !this.isInEpisode(live)) ended.push(this.#nameOf(live));
    return taken.length === 0 ? null : Math.max(...taken.map((entry) => entry.t));
  }

  #holdsAll(live: Live): boolean {
    const log = this.logOf(live);
    return live.causes.length > 0 && live.causes.every((cause, i) => holds(log, cause, i));
  }

  /** Only what is kept as an alarm has episodes. */
  isInEpisode(live: Live): boolean {
    const tells = tellsOf(live.purpose, live.stId, live.event);
    const isKept = tells === 'alarm' || tells === 'silent-alarm';
    return isKept && hasEpisode(this.logOf(live), live.causes);
  }

  #fire(live: Live, ts: number, of: { ageMs: number }, outcomes: Evaluated): void {
    const log = this.logOf(live);
    const isFirst = !this.isInEpisode(live);
    outcomes.firings.push(firingOf(live, log, { ...of, ts, isFirst }));
    log.entries.push({ kind: 'fired' });
  }

  #targetOf({ event }: Live): Place | null {
    const { gotoPuId, gotoStId } = event.actions.engine ?? {};
    if (gotoPuId === undefined && gotoStId === undefined) return null;
    const puId = gotoPuId ?? this.puId;
    const purpose = this.#purposes.find((it) => it.puId === puId);
    const stId = gotoStId ?? purpose?.initStId;
    const state = purpose?.states.find((it) => it.stId === stId);
    return state ? { puId, stId: state.stId } : null;
  }

  #stays({ isGlobal }: Live, to: Place): boolean {
    return to.puId === this.puId && (isGlobal || to.stId === this.stId);
  }

  #move(live: Live, to: Place, ts: number, outcomes: Evaluated): void {
    outcomes.transition = movedOf(live, this.place, to, ts);
    const names = live.event.actions.engine?.gotoPuId !== undefined;
    const reentered = [
      ...(to.puId === this.puId && to.stId === this.stId ? this.#local.values() : []),
      ...(to.puId === this.puId && names ? this.#global.values() : []),
    ];
    for (const { entries } of reentered) entries.push({ kind: 're-entry' });
    this.report(to, outcomes.arrivedTs);
  }

  #enter(to: Place, arrivedTs: number): void {
    this.#local = new Map();
    this.#enteredTs.local = arrivedTs;
    if (to.puId !== this.puId) {
      this.#global = new Map();
      this.#enteredTs.global = arrivedTs;
    }
    this.puId = to.puId;
    this.stId = to.stId;
  }

  #nameOf({ stId, event }: Live): EventName {
    return { puId: this.puId, stId, evId: event.evId };
  }
}

/** Where `orderId` is the same, as in the purpose. */
function inOrder(causes: Cause[]): Cause[] {
  return causes.toSorted((one, other) => (one.orderId ?? 0) - (other.orderId ?? 0));
}
