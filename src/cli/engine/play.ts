import { z } from 'zod';
import { asksForMove } from '../../contract/actions.ts';
import type {
  CauseDetail,
  CauseSense,
  DeviceEvent,
  EventName,
  SenseEvent,
} from '../../contract/event.ts';
import { ErrorDownlink } from '../../contract/profile.ts';
import type { Purpose } from '../../contract/purpose.ts';
import { maxItems, SentMeasurement, SentTs, StateReport } from '../../contract/uplink.ts';
import type { Measurement, Place } from '../../contract/values.ts';
import {
  type Began,
  compileProfile,
  type Evaluated,
  findEvent,
  type Firing,
  type Profile,
  type Tells,
  type Transition,
} from '../../engine/compile.ts';
import { Evaluator } from '../../engine/evaluator.ts';
import { describeEvaluation, explain } from '../../engine/explain.ts';
import { reportedMoveOf } from '../../engine/fire.ts';
import { CowArray, type LastSeen, type Listening, type Newest } from '../../engine/last-seen.ts';
import { broughtBack, enter, type Runtime, startRuntime } from '../../engine/runtime.ts';
import { assignTimestamps, type GivenTimestamps } from '../../ingest/queue.ts';
import { isOldReport } from '../../ingest/rules/apply.ts';
import { addSilentSenses } from '../../ingest/rules/firings.ts';
import { type Clocked, EventTimes } from '../../ingest/rules/measurements.ts';
import { noChanges, type Reported, StoredAlready } from '../../ingest/rules/model.ts';
import { aheadMs } from '../../ingest/rules/watermark.ts';
import { InputError, parsePurposes, parseWith } from './options.ts';
import type { WallMs } from '../../lib/clock-readings.ts';

/** What a stream leads to, in order; `line` if a line of the stream caused it. */
export type Told =
  | ({ kind: 'tick'; arrivedTs: WallMs } & Led)
  | ({ kind: 'measured'; line: number; arrivedTs: WallMs; measurement: Measurement } & Led)
  | { kind: 'not-evaluated'; line: number; arrivedTs: WallMs; measurement: Measurement }
  | ({ kind: 'remark'; line: number; arrivedTs: WallMs } & Remark)
  | { kind: 'entered'; line: number; arrivedTs: WallMs; moves: Moved | null }
  | { kind: 'installed'; line: number; arrivedTs: WallMs; place: Place };

/** Runs a stream through a device, line by line. All times are those of the stream. */
export class Play {
  readonly #purposes: Purpose[];
  #device: Device | null = null;
  #nowTs: WallMs | null;

  /** `installedTs`: when the profile becomes current; null: when the first line arrives. */
  constructor(purposes: Purpose[], installedTs: number | null) {
    this.#purposes = purposes;
    this.#nowTs = installedTs;
    if (installedTs !== null) this.#device = new Device(purposes, installedTs);
  }

  /** Null before the first line. */
  get device(): Device | null {
    return this.#device;
  }

  get nowTs(): number | null {
    return this.#nowTs;
  }

  /** What a line of the stream leads to, after the ticks that are due before it. Throws `InputError`. */
  *happen(happening: Happening, line: number, where: string): Generator<Told> {
    const arrivedTs = arrivalOf(happening, this.#nowTs, where);
    const device = (this.#device ??= new Device(this.#purposes, arrivedTs));
    if (happening.kind === 'clock') {
      device.setClockRight(arrivedTs);
      this.#nowTs = arrivedTs;
    }
    yield* this.runUntil(arrivedTs);
    if (happening.kind === 'enter') {
      const { to, said } = happening;
      const event = device.enter(to, said, arrivedTs);
      yield { kind: 'entered', line, arrivedTs, moves: event && movedOf(to, event) };
    }
    if (happening.kind === 'install') {
      device.install(happening.purposes, arrivedTs);
      yield { kind: 'installed', line, arrivedTs, place: device.place };
    }
    if (happening.kind !== 'message') return;
    const { measured, remarks } = device.measure(happening.sent, arrivedTs);
    for (const { measurement, forced, outcome } of measured) {
      yield* forced.map(ledBy).filter(isSomething).map(tickAt(arrivedTs));
      const led = outcome && ledBy(outcome);
      if (!led) yield { kind: 'not-evaluated', line, arrivedTs, measurement };
      else if (isSomething(led)) yield { kind: 'measured', line, arrivedTs, measurement, ...led };
    }
    for (const remark of remarks) yield { kind: 'remark', line, arrivedTs, ...remark };
  }

  /** Advances the time: the ticks that are due by then. */
  *runUntil(untilTs: number): Generator<Told> {
    this.#nowTs = Math.max(untilTs, this.#nowTs ?? untilTs);
    for (const tick of this.#device?.ticksUntil(untilTs) ?? []) {
      const led = ledBy(tick);
      if (isSomething(led)) yield tickAt(tick.arrivedTs)(led);
    }
  }
}

const tickAt = (arrivedTs: WallMs) => (led: Led) => ({ kind: 'tick' as const, arrivedTs, ...led });

/** A notice on `down/errors` about the device's clock. */
type Remark = { reason: string; message: string };

/**
 * Decides which measurements of a device are evaluated, in which order, and at what time. It uses the service's rules,
 * for a device whose measurements are all stored.
 */
class Arrival {
  readonly #queue: GivenTimestamps = { lastArrival: null };
  readonly #stored = new StoredAlready([]);
  #known: Clocked = {
    device: { deviceId: 0, uuid: '' },
    watched: new Map(),
    seen: CowArray.of<Newest>([]),
    clocks: null,
    remarked: null,
  };

  /** Passes each measurement of a message to `take`, with the time for its evaluation; null: it is not evaluated. */
  receive(
    sent: readonly SentMeasurement[],
    arrivedTs: WallMs,
    take: (measurement: Measurement, t: number | null) => void,
  ): Remark[] {
    const items = sent.map((value, index) => ({ index, value }));
    const content = assignTimestamps(
      { content: { kind: 'measurements', items }, arrivedTs },
      this.#queue,
    );
    if (content.kind !== 'measurements') return [];
    this.#watch(sent);
    const rows = noChanges();
    const message = { topic: 'measurements', arrivedTs, stored: this.#stored, rows };
    const times = new EventTimes(this.#known, message);
    for (const { index, value, isStamped = false } of content.items) {
      const { sId, val, ts = arrivedTs } = value;
      const measurement = { sId, val, ts };
      take(measurement, times.take(measurement, isStamped, `/${index}`));
    }
    this.#known = times.end(this.#known);
    return rows.effects.flatMap((effect) => {
      if (effect.kind !== 'down' || effect.message.topic !== 'errors') return [];
      const { reason, message: text } = ErrorDownlink.parse(effect.message.payload);
      return { reason, message: text };
    });
  }

  /** Adds the newest value of each silent sense to an event that fired. */
  addSilent(event: SenseEvent): void {
    addSilentSenses(this.#known, event);
  }

  /** The newest measurement of each sense. */
  get seen(): LastSeen {
    const { watched, seen } = this.#known;
    const all = [...watched].map(([sId, number]) => [sId, seen.get(number)] as const);
    return Object.fromEntries(all.flatMap(([sId, newest]) => (newest ? [[sId, newest]] : [])));
  }

  /** Watches all senses, because a later profile may read them. */
  #watch(sent: readonly SentMeasurement[]): void {
    const watched = new Map(this.#known.watched);
    for (const { sId } of sent) if (!watched.has(sId)) watched.set(sId, watched.size);
    const { seen, watched: before } = this.#known;
    if (watched.size === before.size) return;
    const all = Array.from({ length: watched.size }, (_, number) => seen.get(number));
    this.#known = { ...this.#known, watched, seen: CowArray.of(all) };
  }
}

/** The result of a measurement: `outcome` is null if it was not evaluated; `forced` are the ticks that it forced. */
type Measured = { measurement: Measurement; forced: Evaluated[]; outcome: Evaluated | null };

/**
 * A device evaluated by the service's rules, without the service: only the engine, and the rules for which measurements
 * count.
 */
export class Device {
  readonly #arrival = new Arrival();
  readonly #listening: Listening;
  #profile: Profile;
  #evaluator: Evaluator;
  /** The newest report of its state under this profile. */
  #reported: Reported | null = null;

  constructor(purposes: Purpose[], installedTs: number, listening: Listening = { gaps: [] }) {
    this.#listening = listening;
    this.#profile = compileProfile('', purposes);
    this.#evaluator = this.#from(startRuntime(this.#profile, installedTs));
  }

  get profile(): Profile {
    return this.#profile;
  }

  get place(): Place {
    const { puId, stId } = this.#settle();
    return { puId, stId };
  }

  nextDueTs(): number | null {
    return this.#evaluator.nextDueTs();
  }

  /** Replaces the current profile by another one. */
  install(purposes: Purpose[], arrivedTs: WallMs): void {
    this.#profile = compileProfile('', purposes);
    this.#evaluator = this.#from(startRuntime(this.#profile, arrivedTs));
    this.#reported = null;
  }

  /**
   * The device reports its state. Returns the event that records it; null if it was in that state already, or if the
   * report is older than or equal to the previous one.
   */
  enter(to: Place, said: Said, arrivedTs: WallMs): DeviceEvent | null {
    const { evId, ts = arrivedTs } = said;
    const reported = { ...to, ts };
    // No report is too far ahead here: any time may be right.
    const known = { isStamped: said.ts === undefined, latestTs: Infinity };
    if (isOldReport(this.#reported, reported, known)) return null;
    this.#reported = reported;
    return this.#enter(to, { evId, ts }, arrivedTs);
  }

  /** Puts the device into a state without a report. */
  standIn(place: Place, arrivedTs: WallMs): void {
    this.#enter(place, { ts: arrivedTs }, arrivedTs);
  }

  #enter(to: Place, said: { evId?: number | undefined; ts: number }, arrivedTs: WallMs) {
    const from = this.#settle();
    this.#evaluator = this.#from(enter(this.#profile, from, to, arrivedTs));
    return reportedMoveOf('', from, to, said);
  }

  /** The clock for arrivals was ahead and is right again: it is `nowTs`. */
  setClockRight(nowTs: WallMs): void {
    this.#evaluator = this.#from(broughtBack(this.#profile, this.#settle(), nowTs + aheadMs));
  }

  ticksUntil(untilTs: number): Evaluated[] {
    return this.#evaluator.ticksUntil(untilTs).map((tick) => this.#told(tick));
  }

  /** Evaluates a message with measurements. Returns them in the order of evaluation. */
  measure(
    sent: readonly SentMeasurement[],
    arrivedTs: WallMs,
  ): { measured: Measured[]; remarks: Remark[] } {
    const measured: Measured[] = [];
    const remarks = this.#arrival.receive(sent, arrivedTs, (measurement, t) => {
      if (t === null) {
        measured.push({ measurement, forced: [], outcome: null });
        return;
      }
      const moment = { t, arrivedTs };
      const ticks = this.#evaluator.ticksForcedBy(measurement.sId, moment);
      const forced = ticks.map((tick) => this.#told(tick));
      const outcome = this.#told(this.#evaluator.measure(measurement, moment, true));
      measured.push({ measurement, forced, outcome });
    });
    return { measured, remarks };
  }

  /** What each live cause has and lacks. */
  explain(nowTs: WallMs) {
    const listening = this.#listening;
    const asked = { nowTs, listening };
    const found = explain(this.#profile, this.#settle(), this.#arrival.seen, asked);
    return describeEvaluation(this.#profile, found, { nowTs });
  }

  /** Takes the device's current evidence, and continues the evaluation from there. */
  #settle(): Runtime {
    const runtime = this.#evaluator.end();
    this.#evaluator = this.#from(runtime);
    return runtime;
  }

  #told(outcome: Evaluated): Evaluated {
    for (const { event } of outcome.firings) this.#arrival.addSilent(event);
    return outcome;
  }

  #from(runtime: Runtime): Evaluator {
    return new Evaluator(this.#profile, runtime, this.#listening);
  }
}

/** The members of a state report besides the state. */
type Said = { evId?: number | undefined; ts?: number | undefined };

/** Something that happens to a device. Without `arrivedTs`, see `arrivalOf`. */
export type Happening = { arrivedTs?: WallMs | undefined } & (
  | { kind: 'message'; sent: SentMeasurement[] }
  | { kind: 'tick'; arrivedTs: WallMs }
  | { kind: 'clock'; arrivedTs: WallMs }
  | { kind: 'enter'; to: Place; said: Said }
  | { kind: 'install'; purposes: Purpose[] }
);

const Arriving = z.object({ arrivedTs: SentTs.optional() });
const Several = z.array(SentMeasurement).min(1).max(maxItems);

/** Parses a line of a stream, or a step of a vector. Throws `InputError`; `where` names the place. */
export function parseHappening(value: unknown, where: string): Happening {
  if (Array.isArray(value)) return message(parseWith(Several, value, where));
  const { arrivedTs } = parseWith(Arriving, value, where);
  const step = value as Record<string, unknown>;
  if ('sId' in step) return message([parseWith(SentMeasurement, step, where)], arrivedTs);
  if ('measurement' in step) {
    const sent = parseWith(SentMeasurement, step['measurement'], where, '/measurement');
    return message([sent], arrivedTs);
  }
  if ('message' in step) {
    return message(parseWith(Several, step['message'], where, '/message'), arrivedTs);
  }
  if ('tick' in step) {
    const { at } = parseWith(z.object({ at: SentTs }), step['tick'], where, '/tick');
    return { kind: 'tick', arrivedTs: at };
  }
  if ('clock' in step) {
    const { at } = parseWith(z.object({ at: SentTs }), step['clock'], where, '/clock');
    return { kind: 'clock', arrivedTs: at };
  }
  if ('enter' in step) {
    const { puId, stId, ...said } = parseWith(StateReport, step['enter'], where, '/enter');
    return { kind: 'enter', to: { puId, stId }, said, arrivedTs };
  }
  if ('install' in step) {
    return {
      kind: 'install',
      purposes: parsePurposes(step['install'], where, '/install'),
      arrivedTs,
    };
  }
  throw new InputError(
    `${where}: expected a measurement { sId, val, ts }, an array of them, or one of measurement, message, tick, clock, enter, install.`,
  );
}

const message = (sent: SentMeasurement[], arrivedTs?: WallMs): Happening => ({
  kind: 'message',
  sent,
  arrivedTs,
});

/**
 * The time of arrival. Without `arrivedTs` it is the newest time in the line, so that nothing is ahead. It is never
 * before the previous one, unless the line corrects the clock.
 */
export function arrivalOf(happening: Happening, lastTs: number | null, where: string): number {
  const { arrivedTs, kind } = happening;
  if (arrivedTs !== undefined) {
    if (lastTs === null || arrivedTs >= lastTs || kind === 'clock') return arrivedTs;
    throw new InputError(
      `${where}: its time ${arrivedTs} is before that of the previous line, ${lastTs}.`,
    );
  }
  const times = happening.kind === 'message' ? happening.sent.map(({ ts }) => ts) : [];
  const known = [...times, lastTs].filter((ts) => typeof ts === 'number');
  if (known.length > 0) return Math.max(...known);
  throw new InputError(`${where}: the first line must give a time: ts or arrivedTs.`);
}

/** A move, and the event that records it; null if the device entered the state in which it was. */
export type Moved = Place & {
  event:
    | (Pick<DeviceEvent, 'event' | 'oldValue' | 'newValue'> & {
        engine: EventName & { ts: number };
      })
    | null;
};

export type Fired = EventName & {
  name: string;
  record: boolean;
  tells: Tells;
  /** Whether people are notified, as far as the episode decides it. */
  ring: boolean;
  first: boolean;
  ts: number;
  ageMs: number;
  began: Began | null;
  senses: CauseSense[];
  why: CauseDetail[];
};

/** What a measurement or a tick led to. It has the members of vectors (test/vectors/README.md), and more. */
export type Led = { fires: Fired[]; ended: EventName[]; shows: string[]; moves?: Moved };

export function ledBy({ firings, ended, transition }: Evaluated): Led {
  return {
    fires: firings.map((firing) => firedOf(firing, transition)),
    ended,
    shows: firings.flatMap(({ actions }) => actions.display?.showText ?? []),
    ...(transition && { moves: movedOf(transition.to, transition.event ?? null) }),
  };
}

/** Whether there is anything to report. */
export const isSomething = ({ fires, ended, moves }: Led): boolean =>
  fires.length > 0 || ended.length > 0 || moves !== undefined;

export function movedOf({ puId, stId }: Place, event: DeviceEvent | null): Moved {
  if (!event) return { puId, stId, event };
  const { oldValue, newValue, cause } = event;
  const { pId: _pId, ...engine } = cause.engine;
  return { puId, stId, event: { event: event.event, oldValue, newValue, engine } };
}

function firedOf(
  { event, name, record, actions, tells, isFirst: first, ageMs, began }: Firing,
  transition: Transition | undefined,
): Fired {
  const { puId, stId, evId } = event.cause.engine;
  // A notice of a move is sent if the device came from another state. The move may be another event's.
  const isReentry = asksForMove(actions) && transition !== undefined && !transition.event;
  const ring = (tells === 'notice' && !isReentry) || (tells === 'alarm' && first);
  const { senses } = event.cause;
  const { ts, why = [] } = event;
  return { puId, stId, evId, name, record, tells, ring, first, ts, ageMs, began, senses, why };
}

/** "2026-11-23 08:10:00.000Z". A time outside the calendar stays a number. */
export function timeText(ts: number): string {
  const time = new Date(ts);
  return Number.isNaN(time.getTime()) ? `${ts} ms` : time.toISOString().replace('T', ' ');
}

/** `state 2 "warm" of purpose 1`. */
export function placeText({ puId, stId }: Place, profile: Profile): string {
  const name = profile.purposes.get(puId)?.states.get(stId)?.name;
  return `state ${stId}${name ? ` ${JSON.stringify(name)}` : ''} of purpose ${puId}`;
}

/** `"too warm" (event 1 of state 1 of purpose 3)`. */
export function eventText({ puId, stId, evId }: EventName, profile: Profile): string {
  const name = findEvent(profile, { puId, stId }, evId)?.name;
  const number = `event ${evId} of state ${stId} of purpose ${puId}`;
  return name ? `${JSON.stringify(name)} (${number})` : number;
}

/** `0x10 -9 of 2026-11-23 08:10:00.000Z`. */
export function measuredText({ sId, val, ts }: Measurement): string {
  const value = typeof val === 'number' ? String(val) : `${val.lat} ${val.long}`;
  return `${sId} ${value} of ${timeText(ts)}`;
}
