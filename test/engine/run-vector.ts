import { expect } from 'vitest';
import type { Place } from '../../src/contract/place.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { checkProfile } from '../../src/engine/check-profile.ts';
import { ReferenceArrival, type Sent } from './reference/arrival.ts';
import type { Gap } from './reference/due.ts';
import type { Moment, Outcomes } from './reference/engine.ts';
import type { Measurement } from '../../src/contract/measurement.ts';
import type { Led, Vector } from './vector.ts';

/** What a vector asks of an engine. */
export type Engine = {
  readonly place: Place;
  ticksUntil(untilTs: number): Outcomes[];
  ticksForcedBy(sId: string, moment: Moment): Outcomes[];
  measure(measurement: Measurement, moment: Moment): Outcomes;
  nextDueTs(): number | null;
  report(to: Place, arrivedTs: number): void;
};
export type StartEngine = (purposes: Purpose[], arrivedTs: number, gaps: Gap[]) => Engine;

/** Runs one vector on an engine, and compares all that the vector says. */
export function runVector(vector: Vector, startEngine: StartEngine): void {
  const gaps = vector.listening ?? [];
  let arrivedTs = vector.installedTs ?? 0;
  let engine = startEngine(load(vector.purposes), arrivedTs, gaps);
  if (vector.starts) engine.report(vector.starts, arrivedTs);
  const arrival = new ReferenceArrival();
  for (const [index, step] of vector.steps.entries()) {
    const say = (led: unknown) => ({ step: index, led });
    if ('tick' in step) {
      expect(say(seen(engine.ticksUntil(step.tick.at), step.ticks))).toEqual(say(step.ticks));
    } else {
      const sent = 'message' in step ? step.message : 'measurement' in step ? [step.measurement] : [];
      const newest = Math.max(arrivedTs, ...sent.map(({ ts }) => ts ?? 0));
      arrivedTs = step.arrivedTs ?? newest;
      const before = engine.ticksUntil(arrivedTs);
      if ('enter' in step) engine.report(step.enter, arrivedTs);
      if ('install' in step) engine = startEngine(load(step.install), arrivedTs, gaps);
      if ('measurement' in step) {
        const [led] = evaluate(engine, arrival, sent, arrivedTs);
        const { fires, ended, moves, ticks = [] } = step;
        const given = { fires, ...(ended && { ended }), ...(moves && { moves }) };
        const found = led ? observe(led.outcomes, given) : { fires: [] };
        expect(say(found)).toEqual(say(given));
        expect(say(seen([...before, ...(led?.ticks ?? [])], ticks))).toEqual(say(ticks));
      } else if ('message' in step) {
        expect(say(seen(before, step.ticks ?? []))).toEqual(say(step.ticks ?? []));
        const all = evaluate(engine, arrival, sent, arrivedTs).map((led, at) => {
          const given = step.evaluates[at] ?? { fires: [] };
          const { measurement, outcomes, ticks } = led;
          const forced = seen(ticks, ('ticks' in given && given.ticks) || []);
          return {
            measurement,
            ...(forced.length === 0 ? {} : { ticks: forced }),
            ...observe(outcomes, given),
          };
        });
        expect(say(all)).toEqual(say(step.evaluates));
      } else {
        expect(before.filter((outcomes) => isSomething(outcomes))).toEqual([]);
      }
    }
    if (step.nextDueTs !== undefined) {
      expect(say(engine.nextDueTs())).toEqual(say(step.nextDueTs));
    }
  }
  expect(engine.place).toEqual(vector.ends);
}

function load(purposes: unknown[]): Purpose[] {
  const parsed = purposes.map((purpose) => Purpose.parse(purpose));
  expect(checkProfile(parsed)).toEqual([]);
  return parsed;
}

function evaluate(engine: Engine, arrival: ReferenceArrival, sent: Sent[], arrivedTs: number) {
  return arrival.receive(sent, arrivedTs).map(({ measurement, moment }) => {
    const ticks = engine.ticksForcedBy(measurement.sId, moment);
    return { measurement, ticks, outcomes: engine.measure(measurement, moment) };
  });
}

export function isSomething({ firings, ended, transition }: Outcomes): boolean {
  return firings.length > 0 || ended.length > 0 || transition !== undefined;
}

/** Ticks that led to something, each with what its expectation speaks of. */
function seen(ticks: Outcomes[], given: Led[]): Led[] {
  return ticks
    .filter((outcomes) => isSomething(outcomes))
    .map((outcomes, index) => observe(outcomes, given[index] ?? { fires: [] }));
}

/** With the optional members that the expectation has. */
function observe({ firings, transition, ended }: Outcomes, given: Led): Led {
  const fires = firings.map(({ event, record, tells, isFirst, ageMs }, index) => {
    const { puId, stId, evId } = event.cause.engine;
    const isNotice = tells === 'notice' && (!transition || transition.event !== undefined);
    const ring = isNotice || (tells === 'alarm' && isFirst);
    const all = { record, ring, first: isFirst, ts: event.ts, ageMs };
    const asked = given.fires[index] ?? all;
    const told = Object.entries(all).filter(([name]) => name in asked);
    return { puId, stId, evId, ...Object.fromEntries(told), senses: event.cause.senses };
  });
  const asked = given.ended === undefined ? {} : { ended };
  if (!transition) return { fires, ...asked };
  const { to, event } = transition;
  const changed = event && {
    event: event.event,
    oldValue: event.oldValue,
    newValue: event.newValue,
  };
  return { fires, ...asked, moves: { ...to, event: changed ?? null } };
}
