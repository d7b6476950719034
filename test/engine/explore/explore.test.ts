import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Purpose } from '../../../src/contract/purpose.ts';
import type { Place } from '../../../src/contract/values.ts';
import { explore, type Explored } from '../../../src/engine/explore/explore.ts';
import { runs } from '../../support/share.ts';
import { measurements, purposes } from '../arbitraries.ts';
import { happenings, purposesInTime, startTs } from '../arbitraries-in-time.ts';
import { startEvaluator } from '../engines.ts';
import { answer, callsOf } from '../play.ts';
import { replay } from './replay.ts';

const few = { mostEffort: 200_000 };

function expectWitnesses(profile: Purpose[], { events, states }: Explored): void {
  for (const { fires, ends, why: _why, ...name } of events) {
    if (fires.is === 'witnessed') expect(replay(profile, fires.steps).fired).toContainEqual(name);
    if (ends?.is !== 'witnessed') continue;
    const { ended, left } = replay(profile, ends.steps);
    expect({ name, isOver: ended.length > 0 || left.length > 0 }).toEqual({ name, isOver: true });
  }
  for (const { reached, left, puId, stId } of states) {
    const place = { puId, stId };
    if (reached.is === 'witnessed')
      expect(replay(profile, reached.steps).reached).toContainEqual(place);
    if (left.is === 'witnessed') expect(replay(profile, left.steps).left).toContainEqual(place);
  }
}

const name = (at: Place, evId?: number) => [at.puId, at.stId, evId ?? ''].join('/');

/** Everything that is said never to happen. */
function nevers({ events, states }: Explored): Set<string> {
  return new Set([
    ...events.flatMap((it) => (it.fires.is === 'never' ? [`fires ${name(it, it.evId)}`] : [])),
    ...states.flatMap((it) => (it.reached.is === 'never' ? [`reaches ${name(it)}`] : [])),
    ...states.flatMap((it) => (it.left.is === 'never' ? [`leaves ${name(it)}`] : [])),
  ]);
}

test('each witness leads to what it witnesses, in the reference engine', () => {
  const any = fc.oneof(purposes, purposesInTime);
  fc.assert(
    fc.property(any, (profile) => expectWitnesses(profile, explore(profile, few))),
    { numRuns: runs(200) },
  );
});

test('no stream does what is said never to happen', () => {
  fc.assert(
    fc.property(
      purposes,
      fc.array(measurements, { minLength: 4, maxLength: 4 }),
      (profile, streams) => {
        const never = nevers(explore(profile, few));
        for (const stream of streams) {
          const engine = startEvaluator(profile, 0);
          for (const measurement of stream) {
            const from = engine.place;
            const moment = { t: measurement.ts, arrivedTs: measurement.ts };
            const { firings, transition } = engine.measure(measurement, moment);
            for (const { event } of firings)
              expect(never).not.toContain(
                `fires ${name(event.cause.engine, event.cause.engine.evId)}`,
              );
            if (!transition) continue;
            expect(never).not.toContain(`reaches ${name(transition.to)}`);
            if (name(from) !== name(transition.to))
              expect(never).not.toContain(`leaves ${name(from)}`);
          }
        }
      },
    ),
    { numRuns: runs(400) },
  );
});

test('nor does time', () => {
  fc.assert(
    fc.property(purposesInTime, happenings, (profile, stream) => {
      const never = nevers(explore(profile, few));
      const engine = startEvaluator(profile, startTs);
      const withoutReports = stream.filter(({ report }) => report === undefined);
      for (const call of callsOf(profile, withoutReports, [])) {
        const { ticks, measured } = answer(engine, call);
        for (const { firings, transition } of [...ticks, ...measured]) {
          for (const { event } of firings)
            expect(never).not.toContain(
              `fires ${name(event.cause.engine, event.cause.engine.evId)}`,
            );
          if (transition) expect(never).not.toContain(`reaches ${name(transition.to)}`);
        }
      }
    }),
    { numRuns: runs(400) },
  );
});

test('the largest purposes are explored too: what is tried is bounded, whatever it costs', () => {
  const limit = (isGt: number, threshold?: object) => ({
    sId: '0x1',
    threshold,
    thresholds: { isGt },
  });
  const states = Array.from({ length: 200 }, (_, s) => ({
    stId: s + 1,
    events: [
      { evId: 1, causes: [limit(s)], actions: { engine: { gotoStId: ((s + 1) % 200) + 1 } } },
    ],
  }));
  const global = Array.from({ length: 64 }, (_, evId) => ({
    evId,
    causes: Array.from({ length: 24 }, (__, c) => limit(evId * 24 + c)),
  }));
  const wide = Purpose.parse({
    puId: 1,
    initStId: 1,
    states: [{ stId: 0, isGlobal: true, events: global }, ...states],
  });
  const long = Purpose.parse({
    puId: 1,
    initStId: 1,
    states: [
      {
        stId: 1,
        events: global.map(({ evId }) => ({
          evId,
          causes: [limit(evId, { count: 1_000 - evId })],
        })),
      },
    ],
  });
  for (const purpose of [wide, long]) {
    const { events, isWhole } = explore([purpose]);
    expect(isWhole).toBe(false);
    expect(events.filter(({ fires }) => fires.is === 'never')).toEqual([]);
  }
});
