import { expect } from 'vitest';
import type { Measurement, Place } from '../../src/contract/values.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { aheadMs } from '../../src/ingest/rules/watermark.ts';
import { checkProfile } from '../../src/engine/check.ts';
import type { Evaluated, Moment, Transition } from '../../src/engine/compile.ts';
import type { DeviceEvent } from '../../src/contract/event.ts';
import { observe, observeMove, observeTicks, withSilent } from './observed.ts';
import { ReferenceArrival, type Sent } from './reference/arrival.ts';
import type { Gap } from './reference/due.ts';
import type { Step, Vector } from './vector.ts';

/** What a report says beside the state. */
export type Said = { evId?: number | undefined; ts?: number | undefined };

type Reported = Place & { ts: number };

/** What a vector calls of an engine. */
export type Engine = {
  readonly place: Place;
  /** Sets when its connector was not listening, as far as is known now. */
  listen(gaps: readonly Gap[]): void;
  ticksUntil(untilTs: number): readonly Evaluated[];
  ticksForcedBy(sId: string, moment: Moment): readonly Evaluated[];
  measure(measurement: Measurement, moment: Moment): Evaluated;
  nextDueTs(): number | null;
  /** The service's clock was ahead and is right again: no time may be later than `latestTs`. */
  setRight(latestTs: number): void;
  /** Returns the event that records the move, if it is one. */
  report(to: Place, arrivedTs: number, said?: Said): DeviceEvent | null;
};
export type StartEngine = (purposes: Purpose[], arrivedTs: number) => Engine;

/** Runs one vector on an engine, and compares everything that the vector specifies. */
export function runVector(vector: Vector, startEngine: StartEngine): void {
  const gaps = vector.listening ?? [];
  const arrival = new ReferenceArrival();
  let arrivedTs = vector.installedTs ?? 0;
  let engine = startEngine(load(vector.purposes), arrivedTs);
  engine.listen(gaps);
  if (vector.starts) engine.report(vector.starts, arrivedTs);
  let reported: Reported | null = null;
  for (const [index, step] of vector.steps.entries()) {
    const { nextDueTs, ...expected } = step;
    if ('clock' in step) {
      arrivedTs = step.clock.at;
      engine.setRight(arrivedTs + aheadMs);
    } else if (!('tick' in step)) arrivedTs = step.arrivedTs ?? newestOf(step, arrivedTs);
    const untilTs = 'tick' in step ? step.tick.at : arrivedTs;
    const before = engine.ticksUntil(untilTs).map((tick) => withSilent(tick, arrival));
    if ('install' in step) {
      engine = startEngine(load(step.install), arrivedTs);
      engine.listen(gaps);
      reported = null;
    }
    const report =
      'enter' in step
        ? { ts: arrivedTs, ...step.enter, isStamped: step.enter.ts === undefined }
        : null;
    const isNews = report !== null && !isOld(reported, report, report.isStamped);
    if (isNews) reported = report;
    const entered = isNews ? enter(engine, report, arrivedTs) : null;
    const evaluateAll = (sent: Sent[]) => evaluate(engine, arrival, sent, arrivedTs);
    const observed = {
      ...observeStep(step, before, evaluateAll),
      ...('enter' in step &&
        step.moves !== undefined && { moves: entered && observeMove(entered, step.moves) }),
    };
    expect({ step: index, ...observed }).toEqual({ step: index, ...expected });
    if (nextDueTs !== undefined) {
      expect({ step: index, nextDueTs: engine.nextDueTs() }).toEqual({ step: index, nextDueTs });
    }
  }
  expect(engine.place).toEqual(vector.ends);
}

/** Whether a report is older than the newest one, or repeats it. Without a time, a report is the newest. */
function isOld(newest: Reported | null, { puId, stId, ts }: Reported, isStamped: boolean): boolean {
  if (!newest) return false;
  if (ts === newest.ts && newest.puId === puId && newest.stId === stId) return true;
  return !isStamped && ts < newest.ts;
}

type Led = { measurement: Measurement; forced: readonly Evaluated[]; outcome: Evaluated };

/** The step with what was observed instead of what it expects. */
function observeStep(
  step: Step,
  before: readonly Evaluated[],
  evaluateAll: (sent: Sent[]) => Led[],
): object {
  if ('tick' in step || 'clock' in step)
    return { ...given(step), ticks: observeTicks(before, step.ticks) };
  const early = observeTicks(before, 'ticks' in step ? step.ticks : undefined);
  if ('measurement' in step) {
    const [led] = evaluateAll([step.measurement]);
    const ticks = observeTicks([...before, ...(led?.forced ?? [])], step.ticks);
    const outcome = led ? observe(led.outcome, step) : { fires: [] };
    return { ...given(step), ...(ticks.length > 0 && { ticks }), ...outcome };
  }
  if (!('message' in step)) return { ...given(step), ...(early.length > 0 && { ticks: early }) };
  const evaluates = evaluateAll(step.message).map(({ measurement, forced, outcome }, index) => {
    const expected = step.evaluates[index];
    const ticks = observeTicks(forced, expected?.ticks);
    return { measurement, ...(ticks.length > 0 && { ticks }), ...observe(outcome, expected) };
  });
  return { ...given(step), ...(early.length > 0 && { ticks: early }), evaluates };
}

function enter(
  engine: Engine,
  { puId, stId, ...said }: Place & Said,
  arrivedTs: number,
): Transition | null {
  const event = engine.report({ puId, stId }, arrivedTs, said);
  return event && { to: { puId, stId }, event };
}

/** The inputs of a step. */
function given(step: Step): object {
  const names = ['measurement', 'message', 'tick', 'clock', 'enter', 'install', 'arrivedTs'];
  return Object.fromEntries(Object.entries(step).filter(([name]) => names.includes(name)));
}

/** Without `arrivedTs`, nothing counts as ahead. */
function newestOf(step: Step, arrivedTs: number): number {
  const ts = 'measurement' in step ? step.measurement.ts : undefined;
  return Math.max(arrivedTs, ts ?? arrivedTs);
}

function load(purposes: unknown[]): Purpose[] {
  const parsed = purposes.map((purpose) => Purpose.parse(purpose));
  expect(checkProfile(parsed)).toEqual([]);
  return parsed;
}

function evaluate(
  engine: Engine,
  arrival: ReferenceArrival,
  sent: Sent[],
  arrivedTs: number,
): Led[] {
  return arrival.receive(sent, arrivedTs).map(({ measurement, moment }) => {
    const forced = engine
      .ticksForcedBy(measurement.sId, moment)
      .map((tick) => withSilent(tick, arrival));
    const outcome = withSilent(engine.measure(measurement, moment), arrival);
    return { measurement, forced, outcome };
  });
}
