import type { DeviceEvent } from '../../../src/contract/event.ts';
import type { Measurement, Place } from '../../../src/contract/values.ts';
import type { Cause, Purpose } from '../../../src/contract/purpose.ts';
import type { Evaluated, Moment } from '../../../src/engine/compile.ts';
import { holds } from './collected.ts';
import { dueOf, lookAgainTs, type Due, type Gap } from './due.ts';
import { hasEpisode } from './episode.ts';
import { firingOf, moveEventOf, movedOf } from './firing.ts';
import { judge } from './judge.ts';
import { speaksOfTime, timeIn, type Log } from './log.ts';
import { Standing, type Live } from './standing.ts';
import { tellsOf } from './tells.ts';
import { newestAgreed } from './told.ts';

/** A tick of the cause at `index`, due at `r`. */
type Waiting = Due & { live: Live; index: number };

/**
 * The purpose engine exactly as the documents describe it: it offers every measurement to every cause of every live
 * event, keeps everything that happened, and computes everything from that. The service's engine must give the same
 * results at less cost.
 */
export class ReferenceEngine {
  readonly #standing: Standing;
  #gaps: readonly Gap[] = [];

  constructor(purposes: Purpose[], arrivedTs = 0) {
    this.#standing = new Standing(purposes, arrivedTs);
  }

  get place(): Place {
    return this.#standing.place;
  }

  /** Sets when its connector was not listening, as far as is known now. */
  listen(gaps: readonly Gap[]): void {
    this.#gaps = gaps;
  }

  /** The service's clock was ahead and is right again: no time may be later than `latestTs`. */
  setRight(latestTs: number): void {
    for (const live of this.live()) this.logOf(live).entries.push({ kind: 'clock', latestTs });
  }

  live(): Live[] {
    return this.#standing.live();
  }

  logOf(live: Live): Log {
    return this.#standing.logOf(live);
  }

  /** The device reports where it is, and optionally which event led there. */
  report(
    to: Place,
    arrivedTs: number,
    { evId = 0, ts = arrivedTs }: { evId?: number | undefined; ts?: number | undefined } = {},
  ): DeviceEvent | null {
    const from = this.place;
    this.#standing.report(to, arrivedTs);
    return moveEventOf({ pId: 'p', ...to, evId, ts }, from, to);
  }

  /** For a measurement that is evaluated. The ticks that it forces must run first. */
  measure(measurement: Measurement, moment: Moment): Evaluated {
    const { arrivedTs } = moment;
    const outcome: Evaluated = { firings: [], ended: [], arrivedTs };
    const live = this.live();
    for (const [position, one] of live.entries()) {
      const t = this.#take(one, measurement, moment, false, outcome);
      const among = one.groups.flatMap((indexes, group) =>
        indexes.some((index) => one.causes[index]?.sId === measurement.sId) ? [group] : [],
      );
      const group = t === null ? undefined : this.#firstHolding(one, among);
      if (t === null || group === undefined) continue;
      const to = this.#standing.targetOf(one);
      const at = { ts: t, nowTs: arrivedTs, ageMs: arrivedTs - moment.t, group };
      this.#fire(one, at, outcome);
      if (!to) continue;
      const after = live.slice(position + 1).filter((later) => this.#standing.stays(later, to));
      for (const later of after) this.#take(later, measurement, moment, true, outcome);
      this.#move(one, to, t, outcome);
      break;
    }
    return outcome;
  }

  /** Runs what is due at `untilTs`, ordered by R. */
  ticksUntil(untilTs: number): Evaluated[] {
    return this.#runAll(() =>
      this.#waiting()
        .filter(({ r }) => r <= untilTs)
        .toSorted((one, other) => one.r - other.r || one.d - other.d),
    );
  }

  /** Runs the ticks that a measurement of that sense forces, ordered by d. One that it forces early arrives with it. */
  ticksForcedBy(sId: string, { t, arrivedTs }: Moment): Evaluated[] {
    return this.#runAll(() =>
      this.#waiting()
        .filter(({ live, index }) => live.causes[index]?.sId === sId)
        .filter(({ live, index }) => live.causes[index]?.threshold?.forMs !== undefined)
        .filter(({ d }) => d < t)
        .map((waiting) => ({ ...waiting, r: Math.min(waiting.r, arrivedTs) }))
        .toSorted((one, other) => one.d - other.d),
    );
  }

  /** The earliest R that waits. */
  nextDueTs(): number | null {
    const times = this.live().flatMap((live) =>
      live.causes.map((cause, index) => lookAgainTs(this.logOf(live), cause, index, this.#gaps)),
    );
    const earliest = Math.min(...times.map((time) => time ?? Infinity));
    return earliest === Infinity ? null : earliest;
  }

  /** Only events that are kept as alarms have episodes. */
  isInEpisode(live: Live): boolean {
    const tells = tellsOf(live.purpose, live.stId, live.event);
    const isKept = tells === 'alarm' || tells === 'silent-alarm';
    return isKept && hasEpisode(this.logOf(live), live);
  }

  #runAll(next: () => Waiting[]): Evaluated[] {
    const all: Evaluated[] = [];
    for (let [tick] = next(); tick; [tick] = next()) all.push(this.#tick(tick));
    return all;
  }

  /** In the order in which events and causes are tried. */
  #waiting(): Waiting[] {
    return this.live().flatMap((live) =>
      live.causes.flatMap((cause, index) => {
        const due = dueOf(this.logOf(live), cause, index, this.#gaps);
        return due ? [{ ...due, live, index }] : [];
      }),
    );
  }

  #tick({ live, index, d, r, ageMs }: Waiting): Evaluated {
    const outcome: Evaluated = { firings: [], ended: [], arrivedTs: r };
    const log = this.logOf(live);
    const newest = live.causes[index] && newestAgreed(log, live.causes[index], index);
    log.entries.push({ kind: 'tick', cause: index, d });
    const own = live.groups.findIndex((indexes) => indexes.includes(index));
    const group = this.#firstHolding(live, [own]);
    if (group === undefined) return outcome;
    const times = (live.groups[group] ?? []).map(
      (i) => newestAgreed(log, live.causes[i] as Cause, i)?.t ?? -Infinity,
    );
    const ts = newest ? Math.max(d, ...times) : d;
    const to = this.#standing.targetOf(live);
    this.#fire(live, { ts, nowTs: newest ? r : d, ageMs, group }, outcome);
    if (to) this.#move(live, to, ts, outcome);
    return outcome;
  }

  /** The time at which a measurement was taken, as a whole or only as a disagreement; null if it was not. */
  #take(
    live: Live,
    measurement: Measurement,
    { t, arrivedTs }: Moment,
    isOnlyDisagreement: boolean,
    { ended }: Evaluated,
  ): number | null {
    const log = this.logOf(live);
    const wasInEpisode = this.isInEpisode(live);
    const taken = live.causes.flatMap((cause, index) => {
      if (cause.sId !== measurement.sId) return [];
      const at = speaksOfTime(live.causes) ? timeIn(log, index, t) : t;
      const verdict = judge(log, { cause, index }, measurement.val, at);
      if (verdict === 'none') return [];
      const outcome = verdict === 'uncompared' ? null : verdict;
      if (isOnlyDisagreement && outcome?.agrees !== false) return [];
      const ageMs = arrivedTs - t;
      const kind = 'taken' as const;
      return [{ kind, cause: index, t: at, arrivedTs, ageMs, measurement, outcome }];
    });
    log.entries.push(...taken);
    if (wasInEpisode && !this.isInEpisode(live)) {
      ended.push({ puId: this.place.puId, stId: live.stId, evId: live.event.evId });
    }
    return taken.length === 0 ? null : Math.max(...taken.map((entry) => entry.t));
  }

  /** The groups of causes that all hold. */
  #holding({ causes, groups }: Live, log: Log): number[] {
    const holdsAt = (index: number) => holds(log, causes[index] as Cause, index);
    return groups.flatMap((indexes, group) =>
      indexes.length > 0 && indexes.every(holdsAt) ? [group] : [],
    );
  }

  /** A measurement fires only groups that read its sense, and a tick the group of its cause. */
  #firstHolding(live: Live, among: number[]): number | undefined {
    return this.#holding(live, this.logOf(live)).find((group) => among.includes(group));
  }

  #fire(
    live: Live,
    { ageMs, ...at }: { ts: number; nowTs: number; ageMs: number; group: number },
    outcome: Evaluated,
  ): void {
    const log = this.logOf(live);
    const isFirst = !this.isInEpisode(live);
    const groups = this.#holding(live, log);
    outcome.firings.push(firingOf(live, log, { ...at, ageMs: Math.max(0, ageMs), isFirst }));
    log.entries.push({ kind: 'fired', groups });
  }

  #move(live: Live, to: Place, ts: number, outcome: Evaluated): void {
    outcome.transition = movedOf(live, this.place, to, ts);
    this.#standing.move(live, to, outcome.arrivedTs);
  }
}
