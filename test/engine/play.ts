import type { Measurement, Place } from '../../src/contract/values.ts';
import type { Purpose } from '../../src/contract/purpose.ts';
import type { Evaluated, Moment } from '../../src/engine/compile.ts';
import { aheadMs } from '../../src/ingest/rules/watermark.ts';
import { startTs, type Happening } from './arbitraries-in-time.ts';
import { isSomething } from './observed.ts';
import { ReferenceArrival, type Sent } from './reference/arrival.ts';
import type { Gap } from './reference/due.ts';
import type { Engine } from './run-vector.ts';

/** A call to an engine. `ticks` runs what is due at `untilTs`; `gaps` are those known by then. */
export type Call =
  | { kind: 'ticks'; untilTs: number; gaps: Gap[] }
  | { kind: 'measure'; measurement: Measurement; moment: Moment }
  | { kind: 'report'; to: Place; arrivedTs: number }
  | { kind: 'clock'; latestTs: number }
  | { kind: 'store' };

/** Turns happenings into calls. Decides which values are late, ahead or stored already. */
export function callsOf(purposes: Purpose[], happenings: Happening[], gaps: Gap[]): Call[] {
  let arrival = new ReferenceArrival();
  const messages: Sent[][] = [];
  let now = startTs;
  return happenings.flatMap(({ afterMs, ticksEarly, isStored, values, again, report, backMs }) => {
    const early = ticksAt(now + Math.floor(afterMs / 2), gaps);
    now += afterMs;
    const arrivedTs = now;
    const calls = ticksEarly ? [early] : [];
    if (isStored) calls.push({ kind: 'store' });
    calls.push(ticksAt(now, gaps));
    if (backMs !== undefined) {
      now -= backMs;
      // Everything the device sends from now on is evaluated; otherwise too little would happen.
      arrival = new ReferenceArrival();
      return [...calls, { kind: 'clock', latestTs: now + aheadMs }, ticksAt(now, gaps)];
    }
    if (report) calls.push({ kind: 'report', to: placeOf(purposes, report), arrivedTs });
    if (values) messages.push(values.map((value) => sentOf(value, now)));
    const sent = again === undefined ? values && messages.at(-1) : messages.at(again);
    const arrived = sent ? arrival.receive(sent, arrivedTs) : [];
    return [...calls, ...arrived.map((one): Call => ({ kind: 'measure', ...one }))];
  });
}

/** A lasting gap is known, but not when it will end. */
function ticksAt(untilTs: number, gaps: Gap[]): Call {
  const known = gaps
    .filter(({ fromTs }) => fromTs < untilTs)
    .map(({ fromTs, toTs }) => ({ fromTs, toTs: toTs !== null && toTs <= untilTs ? toTs : null }));
  return { kind: 'ticks', untilTs, gaps: known };
}

function sentOf({ sId, val, agoMs }: NonNullable<Happening['values']>[number], now: number): Sent {
  return agoMs === null ? { sId, val } : { sId, val, ts: now - agoMs };
}

function placeOf(purposes: Purpose[], [which, state]: [number, number]): Place {
  const { puId, states } = purposes[which % purposes.length] as Purpose;
  return { puId, stId: states[state % states.length]?.stId ?? 0 };
}

/** What ticks and a measurement led to, if anything, and the device's place and next due time afterwards. */
export type Answer = {
  ticks: Evaluated[];
  measured: Evaluated[];
  place: Place;
  nextDueTs: number | null;
};

/** Makes a call. Ticks that a measurement forces come before it. */
export function answer(engine: Engine & { store?: () => void }, call: Call): Answer {
  const ticks: Evaluated[] = [];
  const measured: Evaluated[] = [];
  if (call.kind === 'store') engine.store?.();
  if (call.kind === 'ticks') {
    engine.listen(call.gaps);
    ticks.push(...engine.ticksUntil(call.untilTs));
  }
  if (call.kind === 'clock') engine.setRight(call.latestTs);
  if (call.kind === 'report') engine.report(call.to, call.arrivedTs);
  if (call.kind === 'measure') {
    const { measurement, moment } = call;
    ticks.push(...engine.ticksForcedBy(measurement.sId, moment));
    measured.push(engine.measure(measurement, moment));
  }
  return {
    ticks: ticks.filter((outcome) => isSomething(outcome)),
    measured: measured.filter((outcome) => isSomething(outcome)),
    place: engine.place,
    nextDueTs: engine.nextDueTs(),
  };
}
