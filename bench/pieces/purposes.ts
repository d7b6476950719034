import { Purpose } from '../../src/contract/purpose.ts';

/** The sense that all of these read: a short name, so that much fits into 256 KiB. */
export const senseId = '1';

type CauseOf = (number: number) => object;

/** One state with this many events and causes. */
export function stateWith(events: number, causes: number, causeOf: CauseOf): Purpose {
  return Purpose.parse({
    puId: 1,
    initStId: 1,
    states: [{ stId: 1, events: eventsOf(events, causes, causeOf) }],
  });
}

/** Global states with events of one `isAny` each, this many in total. */
export function globalAny(count: number, eventLog: boolean): Purpose {
  const states = Array.from({ length: Math.ceil(count / 64) }, (_, index) => ({
    stId: index + 1,
    isGlobal: true,
    events: eventsOf(Math.min(64, count - index * 64), 1, () => ({ isAny: true })).map((event) =>
      eventLog ? { ...event, eventLog } : event,
    ),
  }));
  return Purpose.parse({ puId: 1, initStId: 1, states });
}

/** Never agrees. */
export const never: CauseOf = (number) => ({ isGt: 1e9 + number });

/** Always agrees, except for the last of an event's causes, which keeps it from firing. */
export const butOne =
  (causes: number): CauseOf =>
  (number) =>
    number % causes === causes - 1 ? { isGt: 1e9 } : { isLt: 1e9 + number };

/** Agrees with about half of the measurements, each cause with another half. */
export const half: CauseOf = (number) => ({ isGt: number % 100 });

/** A polygon with this many corners that winds round the globe again and again. */
export const winding =
  (corners: number): CauseOf =>
  () => ({
    isInsideGeo: Array.from({ length: corners }, (_, index) => ({
      lat: index % 2,
      long: ((index * 119 + 180) % 360) - 180,
    })),
  });

/** The same with windows of this many outcomes, all of which must agree. */
export const windowed =
  (count: number, causeOf: CauseOf): CauseOf =>
  (number) => ({ ...causeOf(number), count });

function eventsOf(events: number, causes: number, causeOf: CauseOf) {
  return Array.from({ length: events }, (_, e) => ({
    evId: e + 1,
    causes: Array.from({ length: causes }, (_unused, c) => {
      const { count, ...thresholds } = causeOf(e * causes + c) as { count?: number };
      return { sId: senseId, thresholds, ...(count && { threshold: { count } }) };
    }),
  }));
}

/**
 * Two states that send a device back and forth on a silence of a second. Each has this many events and causes; the
 * others wait for a silence that never comes.
 */
export function restless(events: number, causes: number): Purpose {
  const waiting = (ms: number) => ({ sId: senseId, threshold: { noneForMs: ms } });
  const states = [1, 2].map((stId) => ({
    stId,
    events: Array.from({ length: events }, (_, e) => ({
      evId: e + 1,
      eventLog: true,
      causes: Array.from({ length: e === 0 ? 1 : causes }, (_unused, c) =>
        waiting(e === 0 ? 1_000 : 86_400_000 + e * causes + c),
      ),
      actions: e === 0 ? { engine: { gotoStId: 3 - stId } } : {},
    })),
  }));
  return Purpose.parse({ puId: 1, initStId: 1, states });
}

/** Each value opens the alarms of half of these events, and closes those of the others. Half of them notify people. */
export function alarming(events: number): Purpose {
  const states = Array.from({ length: Math.ceil(events / 64) }, (_, s) => ({
    stId: s + 1,
    isGlobal: true,
    events: Array.from({ length: Math.min(64, events - s * 64) }, (_unused, e) => ({
      evId: e + 1,
      name: 'x'.repeat(200),
      causes: [{ sId: senseId, thresholds: e % 2 === 0 ? { isGt: 0 } : { isLt: 0 } }],
      actions: e % 4 < 2 ? { cloud: { sendPush: true } } : { alarm: true },
    })),
  }));
  return Purpose.parse({ puId: 1, initStId: 1, states });
}
