import { type Configuration, type Sense, sensesOf } from '../../contract/configuration.ts';
import { checkConfigurationSizes } from '../../contract/purpose.ts';
import type { DeviceIdentity, Item, Rejection, SentMeasurement } from '../../contract/uplink.ts';
import { lastOf, type Measurement } from '../../contract/values.ts';
import type { Evaluated, Profile, Transition } from '../../engine/compile.ts';
import { Evaluator } from '../../engine/evaluator.ts';
import {
  type CowArray,
  type Newest,
  newestAfter,
  watchedOf,
  withLast,
} from '../../engine/last-seen.ts';
import { takePlace } from './arrival.ts';
import { logAfter } from './evidence-log.ts';
import { noteInput, noteLateHour } from './inputs.ts';
import { makesAlarms, performFiring, recordEvent, signal, signalMove } from './firings.ts';
import {
  type Applied,
  type ApplyLimits,
  type Changes,
  costs,
  type DeviceState,
  type MeasurementRow,
  type MessageScope,
  nameOfStored,
} from './model.ts';
import {
  aheadMs,
  extendRun,
  isSetBack,
  type LateRun,
  ofDevice,
  type Remarked,
  type Watermark,
} from './watermark.ts';
import type { WallMs } from '../../lib/clock-readings.ts';

/** Stores measurements, and evaluates them if the service runs the profile: at least one item, within the budget. */
export function applyMeasurements(
  before: DeviceState,
  items: Item<SentMeasurement>[],
  scope: MessageScope,
): Applied {
  const { senses } = before;
  const { deviceId } = before.device;
  const { limits, arrivedTs, arrival, budget, rows } = scope;
  const evaluation = new MessageEvaluation(before, scope);
  const times = new EventTimes(before, scope);
  let { lateHour } = before;
  let applied = 0;
  while (applied < items.length && (applied === 0 || !budget.isSpent)) {
    const { index, value, isStamped = false } = items[applied++] as Item<SentMeasurement>;
    const { sId, val, ts = arrivedTs } = value;
    const path = index === null ? '' : `/${index}`;
    // A time that the service assigned is never refused, even if its clock has changed since.
    const wrong =
      checkSense(senses, sId, val, path) ??
      (isStamped ? null : checkTime(ts, scope, limits.measurementMaxAgeMs, `${path}/ts`));
    if (wrong) {
      scope.reject(wrong);
      continue;
    }
    budget.spent += 1;
    const measurement: Measurement = { sId, val, ts };
    const nth = takePlace(arrival, isStamped);
    const row: MeasurementRow =
      typeof val === 'number'
        ? { deviceId, sId, ts, val, long: undefined, arrival, nth }
        : { deviceId, sId, ts, val: val.lat, long: val.long, arrival, nth };
    rows.measurements.push(row);
    lateHour = noteLateHour(deviceId, lateHour, { ts, arrivedTs }, rows);
    scope.outcome?.measure(row);
    const t = times.take(measurement, isStamped, path);
    if (t !== null) evaluation.measure(measurement, t);
    else evaluation.passOver(measurement);
  }
  const after = times.end(evaluation.end());
  const deviceState = lateHour === after.lateHour ? after : { ...after, lateHour };
  return { deviceState, items: Math.max(1, applied) };
}

/** No measurement is this old: such times are usually in seconds, or from a clock that was never set. */
const year2001 = 978_307_200_000;

/** A hint about such a time; empty for any other. */
function unitOf(ts: number): string {
  if (ts >= year2001) return '';
  const meant = ts * 1_000 >= year2001 ? ' It looks like seconds.' : '';
  return ` Expected milliseconds since 1970-01-01 (UTC); this is before the year 2001.${meant}`;
}

type TimeLimits = Pick<ApplyLimits, 'maxAheadMs' | 'doubtSpanMs'>;

/**
 * Rejects a time too far ahead of the arrival, or older than the history. While the service's clock is in doubt,
 * rejects only what is wrong both by the clock and by where it should be. Null if the time is fine.
 */
export function checkTime(
  ts: number,
  { arrivedTs, limits }: { arrivedTs: WallMs; limits: TimeLimits },
  maxAgeMs: number,
  path: string,
): Rejection | null {
  const spanMs = limits.doubtSpanMs?.() ?? 0;
  if (ts > arrivedTs + Math.max(0, spanMs) + limits.maxAheadMs) {
    const message = `ts ${ts} is ${ts - arrivedTs} ms ahead of the service's clock; at most ${limits.maxAheadMs} ms are accepted.`;
    const details = { ts, maxAheadMs: limits.maxAheadMs };
    return { reason: 'future-timestamp', message, path, details };
  }
  if (ts < arrivedTs + Math.min(0, spanMs) - maxAgeMs) {
    const message = `ts ${ts} is older than the history that is kept (${maxAgeMs} ms).${unitOf(ts)}`;
    return { reason: 'expired-timestamp', message, path, details: { ts, maxAgeMs } };
  }
  return null;
}

/** Rejects a sense that the configuration does not name, or a number outside its range. Null if both are fine. */
export function checkSense(
  senses: ReadonlyMap<string, Sense>,
  sId: string,
  val: unknown,
  path: string,
): Rejection | null {
  const sense = senses.get(sId);
  if (!sense) {
    const message = `The device's configuration has no sense ${sId}.`;
    return { reason: 'unknown-sense', message, path: `${path}/sId`, details: { sId } };
  }
  if (typeof val !== 'number') return null;
  const below = sense.min !== undefined && val < sense.min;
  const above = sense.max !== undefined && val > sense.max;
  if (!below && !above) return null;
  const message = `${val} is outside the range ${sense.min ?? '-∞'} to ${sense.max ?? '∞'} of sense ${sId}.`;
  const { min, max } = sense;
  const range = { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
  const details = { sId, val, ...range };
  return { reason: 'out-of-range', message, path: `${path}/val`, details };
}

/**
 * Replaces the device's configuration; its senses count from the next message on. A configuration that is too large is
 * rejected, and the one before stays.
 */
export function applyConfiguration(
  deviceState: DeviceState,
  configuration: Configuration,
  scope: MessageScope,
): DeviceState {
  const { rows, limits, reject } = scope;
  const sizes = limits.sizesOf?.(deviceState.device.accountId);
  const [wrong] = sizes ? checkConfigurationSizes(configuration, sizes) : [];
  if (wrong) {
    reject({ reason: 'invalid-payload', ...wrong });
    return deviceState;
  }
  scope.outcome?.store();
  rows.configurations.push({ deviceId: deviceState.device.deviceId, configuration });
  const senses = sensesOf(configuration);
  const sIds = [...senses.keys()];
  const isGone = (sId: string) => !senses.has(sId);
  const isAnyGone = [...deviceState.senses.keys()].some(isGone);
  if (isAnyGone || sIds.some((sId) => !deviceState.senses.has(sId)))
    noteInput(deviceState, { kind: 'configuration', body: { sIds } }, scope);
  if (isAnyGone && makesAlarms(deviceState))
    signal(deviceState, { kind: 'configuration', sIds }, scope);
  return { ...deviceState, senses };
}

/** The profile that the service evaluates; only its silences if the device evaluates itself. Null: none. */
export function evaluatedProfile({ current }: DeviceState): Profile | null {
  if (!current) return null;
  return current.engine === 'service' ? current.profile : watchedOf(current.profile);
}

/** The evaluation of one message or tick, if the service evaluates for its device. */
export class MessageEvaluation {
  readonly #scope: MessageScope;
  readonly #evaluator: Evaluator | null;
  readonly #before: DeviceState;
  readonly #evaluated: Measurement[] = [];
  #deviceState: DeviceState;
  #hasFired = false;
  /** By sense: the earliest and the latest `ts` of what was not evaluated. */
  #late: Map<string, { sId: string; fromTs: number; toTs: number }> | null = null;

  constructor(deviceState: DeviceState, scope: MessageScope) {
    const { runtime, device } = deviceState;
    const profile = evaluatedProfile(deviceState);
    const { listeningOf } = scope.limits;
    this.#scope = scope;
    this.#before = deviceState;
    this.#deviceState = deviceState;
    this.#evaluator =
      profile && runtime
        ? new Evaluator(profile, runtime, profile.isTimed ? listeningOf?.(device) : undefined)
        : null;
  }

  /**
   * Evaluates what time alone has triggered until `untilTs`, until the budget is spent, but up to at least one change
   * of state. Returns whether that was everything.
   */
  runUntil(untilTs: number): boolean {
    const evaluator = this.#evaluator;
    if (!evaluator) return true;
    for (;;) {
      const before = evaluator.cost;
      const ticks = evaluator.ticksUntil(untilTs, 1);
      this.#charge(evaluator.cost - before);
      for (const tick of ticks) this.#perform(tick, tick.arrivedTs);
      if (!ticks.at(-1)?.transition) return true;
      if (this.#scope.budget.isSpent) return false;
    }
  }

  /** What is known by now of the device's senses, for firings that name silent ones; call it between messages. */
  know(times: EventTimes): void {
    this.#deviceState = times.end(this.#deviceState);
  }

  /** Evaluates a measurement that is new to the device's purposes, as of `t`. */
  measure(measurement: Measurement, t: number): void {
    if (this.#evaluator) this.#evaluate(this.#evaluator, measurement, t);
    if (this.#deviceState.waitingSenses)
      this.#deviceState = signalHeard(this.#deviceState, { sId: measurement.sId, t }, this.#scope);
  }

  /** A measurement is not evaluated. Alarms of its sense may have to look at it. */
  passOver({ sId, ts }: Measurement): void {
    const { watched } = this.#before;
    if (!watched.has(sId) || !makesAlarms(this.#before)) return;
    const known = (this.#late ??= new Map()).get(sId) ?? { sId, fromTs: ts, toTs: ts };
    const { fromTs, toTs } = known;
    this.#late.set(sId, { sId, fromTs: Math.min(fromTs, ts), toTs: Math.max(toTs, ts) });
  }

  #evaluate(evaluator: Evaluator, measurement: Measurement, t: number): void {
    const before = evaluator.cost;
    if (this.#before.evidenceLog) this.#evaluated.push(measurement);
    const moment = { t, arrivedTs: this.#scope.arrivedTs };
    for (const tick of evaluator.ticksForcedBy(measurement.sId, moment)) this.#perform(tick, t);
    const evaluated = evaluator.measure(measurement, moment, false);
    this.#charge(evaluator.cost - before);
    this.#perform(evaluated, t);
  }

  /** The device's state afterwards. */
  end(): DeviceState {
    if (this.#late) {
      this.#scope.budget.spent += costs.alarm;
      const senses = [...this.#late.values()];
      signal(this.#deviceState, { kind: 'late', senses }, this.#scope);
    }
    const deviceState = this.#deviceState;
    const runtime = this.#evaluator?.end();
    if (!runtime) return deviceState;
    // An event's key contains the version of the device's row, so whatever records an event has to write the row.
    const isSame = runtime === deviceState.runtime;
    if (isSame && !this.#hasFired) return deviceState;
    const after = isSame ? { ...runtime } : runtime;
    const evidenceLog = logAfter(this.#before, after, this.#evaluated);
    return { ...deviceState, runtime: after, evidenceLog };
  }

  #charge(cost: number): void {
    this.#scope.budget.spent += cost * costs.cause;
  }

  #perform({ firings, transition, ended, arrivedTs }: Evaluated, ts: number): void {
    const scope = this.#scope;
    if (ended.length > 0)
      signal(this.#deviceState, { kind: 'ended', of: ended, ts, arrivedTs }, scope);
    for (const firing of firings) {
      firing.event.arrivedTs = arrivedTs;
      this.#deviceState = performFiring(this.#deviceState, firing, transition?.to ?? null, scope);
      this.#hasFired = true;
    }
    if (!transition) return;
    const moved = { to: transition.to, ts: transition.event?.ts ?? ts, isReport: false, arrivedTs };
    signalMove(this.#deviceState, moved, scope);
    this.#deviceState = move(this.#deviceState, transition, ts, scope);
  }
}

function move(
  deviceState: DeviceState,
  { to, event }: Transition,
  ts: number,
  scope: MessageScope,
): DeviceState {
  if (event) recordEvent(deviceState, event, scope);
  const { uuid } = deviceState.device;
  const placeTs = event?.ts ?? ts;
  const message = { topic: 'state' as const, payload: { ...to, ts: placeTs } };
  scope.rows.effects.push({ kind: 'down', uuid, message });
  return { ...deviceState, place: to, placeTs };
}

/**
 * A sense was heard at `t`. If an alarm of the device waits for a fresh measurement of it, alarms are signalled. Call
 * this after the measurement was evaluated, which may have ended the alarm.
 */
function signalHeard(
  deviceState: DeviceState,
  { sId, t }: { sId: string; t: number },
  scope: MessageScope,
): DeviceState {
  const { waitingSenses } = deviceState;
  const isFresh = t >= scope.arrivedTs - scope.limits.ringMaxAgeMs;
  if (!isFresh || !waitingSenses?.has(sId)) return deviceState;
  signal(deviceState, { kind: 'heard', sIds: [sId] }, scope);
  const left = new Set(waitingSenses);
  left.delete(sId);
  return { ...deviceState, waitingSenses: left.size > 0 ? left : null };
}

/** What this needs to know of a device. */
export type Clocked = Pick<DeviceState, 'watched' | 'seen' | 'clocks' | 'remarked'> & {
  device: RemarkedDevice;
};
type Message = Pick<MessageScope, 'topic' | 'arrivedTs' | 'stored'> & {
  rows: Pick<Changes, 'clocks' | 'effects'>;
};

type Given = {
  measurement: Measurement;
  isStamped: boolean;
  path: string;
  /** The number of its sense among the watched ones. */
  number: number;
  isAhead: boolean;
};

/**
 * Decides which of a message's measurements are evaluated, and as of when: those that are not stored already and not
 * older than the clock of their sense (`Watermark`). Usually that clock is the newest measurement, and nothing else has
 * to be looked at.
 */
export class EventTimes {
  readonly #device: Clocked;
  readonly #scope: Message;
  #seen: CowArray<Newest>;
  #clocks: ReadonlyMap<string, Watermark> | null;
  #remarked: Remarked | null;

  constructor(device: Clocked, scope: Message) {
    this.#device = device;
    this.#scope = scope;
    this.#seen = device.seen;
    this.#clocks = device.clocks;
    this.#remarked = device.remarked;
  }

  /**
   * The time as of which a measurement is evaluated, ms; null if it is not evaluated. `isStamped`: the service gave it
   * the time of its arrival. `path`: its place in the message.
   */
  take(measurement: Measurement, isStamped: boolean, path: string): number | null {
    const { sId, ts } = measurement;
    const { arrivedTs, stored } = this.#scope;
    const isAhead = ts > arrivedTs + aheadMs;
    if (isAhead && !isStamped) this.#remarkAhead(measurement, path);
    const number = this.#device.watched.get(sId);
    if (number === undefined) return null;
    const isAgain = stored !== null && stored.isAgain(nameOfStored(measurement));
    const last = this.#seen.get(number);
    const isBelow = last !== undefined && ts < last.ts;
    const isPlain = !isAhead && !isBelow && !this.#clocks?.has(sId);
    if (isPlain) return this.#goOn(measurement, number, isAgain);
    return isAgain ? null : this.#weigh({ measurement, isStamped, path, number, isAhead });
  }

  /** The same for a measurement that cannot be decided by the newest one of its sense. */
  #weigh({ measurement, isStamped, path, number, isAhead }: Given): number | null {
    const { sId, ts } = measurement;
    const { arrivedTs } = this.#scope;
    const last = this.#seen.get(number);
    const clock = this.#clocks?.get(sId);
    const isBelow = last !== undefined && ts < last.ts;
    const newest = {
      newestTs: clock?.newestTs ?? last?.ts ?? ts,
      newestVal: clock ? clock.newestVal : lastOf(last),
    };
    const { newestTs } = newest;
    const own = ts >= newestTs ? { newestTs: ts, newestVal: measurement.val } : newest;
    if (isAhead) {
      this.#keep(sId, number, own, null);
      return arrivedTs;
    }
    if (isBelow && isStamped) {
      // Also for its arrival, which the newest value does not have.
      this.#keep(sId, number, newest, null);
      return ts;
    }
    if (isBelow) {
      const late = extendRun(clock?.late ?? null, ts, arrivedTs);
      if (isSetBack(late, arrivedTs))
        return this.#setBack({ measurement, path, number }, newest, late);
      this.#keep(sId, number, newest, late);
      return null;
    }
    const t = this.#goOn(measurement, number, false);
    // It is newer than everything stored, so the history's newest value says everything and the watermark no longer
    // applies.
    if (ts > newestTs) this.#forget(sId);
    else this.#keep(sId, number, own, null);
    return t;
  }

  /** The device's state afterwards; `after` is its state after the evaluation. */
  end<Known extends Clocked>(after: Known): Known {
    const [seen, clocks, remarked] = [this.#seen, this.#clocks, this.#remarked];
    const isSame = seen === after.seen && clocks === after.clocks && remarked === after.remarked;
    return isSame ? after : { ...after, seen, clocks, remarked };
  }

  /** Takes a measurement that is not older than the clock. */
  #goOn(measurement: Measurement, number: number, isAgain: boolean): number | null {
    const last = this.#seen.get(number);
    const newest = newestAfter(last, measurement);
    if (newest) this.#seen = this.#seen.with(number, newest);
    else if (last && !isAgain) this.#seen = this.#seen.with(number, withLast(last, measurement));
    return newest && measurement.ts;
  }

  #setBack(
    { measurement, path, number }: Pick<Given, 'measurement' | 'path' | 'number'>,
    newest: Pick<Watermark, 'newestTs' | 'newestVal'>,
    run: LateRun,
  ): number {
    const { sId, ts, val } = measurement;
    const clockTs = this.#seen.get(number)?.ts ?? newest.newestTs;
    this.#remark('clock-back', path, backMessage(sId, run, clockTs));
    this.#seen = this.#seen.with(number, { ts, vals: [val] });
    this.#keep(sId, number, newest, null);
    return ts;
  }

  #remarkAhead({ sId, ts }: Measurement, path: string): void {
    const message =
      `ts ${ts} of sense ${sId} is ${ts - this.#scope.arrivedTs} ms ahead of the service's ` +
      'clock. The value is stored with this ts and evaluated as of its arrival. Reported once an ' +
      'hour.';
    this.#remark('clock-ahead', `${path}/ts`, message);
  }

  #remark(reason: 'clock-ahead' | 'clock-back', path: string, message: string): void {
    this.#remarked = remark(this.#device, this.#remarked, { reason, message, path }, this.#scope);
  }

  /** Saves the watermark of a clock whose time is the one in `#seen`. */
  #keep(
    sId: string,
    number: number,
    newest: Pick<Watermark, 'newestTs' | 'newestVal'>,
    late: LateRun | null,
  ): void {
    const { deviceId } = this.#device.device;
    const { ts: clockTs = null, vals = [] } = this.#seen.get(number) ?? {};
    const { arrivedTs } = this.#scope;
    const state: Watermark = { ...newest, clockTs, vals, late, arrivedTs };
    this.#clocks = new Map(this.#clocks).set(sId, state);
    this.#scope.rows.clocks.set(`${deviceId} ${sId}`, { deviceId, sId, state });
  }

  #forget(sId: string): void {
    const clocks = new Map(this.#clocks);
    clocks.delete(sId);
    this.#clocks = clocks.size > 0 ? clocks : null;
  }
}

function backMessage(sId: string, { total, lastTs }: LateRun, clockTs: number): string {
  return (
    `The last ${total} values of sense ${sId} are older than the newest one, of ts ${clockTs}, ` +
    `but advance like a clock: the clock was set back. Values from ts ${lastTs} on are evaluated ` +
    'again.'
  );
}

/** The device to tell. */
type RemarkedDevice = Pick<DeviceIdentity, 'deviceId' | 'uuid'>;
type Saying = Pick<MessageScope, 'topic' | 'arrivedTs'> & {
  rows: Pick<Changes, 'clocks' | 'effects'>;
};

type Remark = { reason: 'clock-ahead' | 'clock-back'; message: string; path: string };

const remarkEveryMs = 3_600_000;

const memberOf = { 'clock-ahead': 'aheadTs', 'clock-back': 'backTs' } as const;

/** Tells the device about its clock, at most once an hour; nothing is rejected. Returns when it was last told what. */
function remark(
  { device: { deviceId, uuid } }: { device: RemarkedDevice },
  before: Remarked | null,
  { reason, message, path }: Remark,
  { rows, arrivedTs, topic }: Saying,
): Remarked | null {
  const member = memberOf[reason];
  const last = before?.[member] ?? null;
  if (last !== null && arrivedTs < last + remarkEveryMs) return before;
  const payload = { topic, reason, message, path, ts: arrivedTs };
  rows.effects.push({ kind: 'down', uuid, message: { topic: 'errors', payload } });
  const remarked: Remarked = { aheadTs: null, backTs: null, ...before, [member]: arrivedTs };
  rows.clocks.set(`${deviceId} `, { deviceId, sId: ofDevice, state: remarked });
  return remarked;
}
