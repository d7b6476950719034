import { describe, expect, test } from 'vitest';
import { findEvent } from '../../src/engine/compile.ts';
import { evaluate } from '../../src/engine/evaluator.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { startRuntime } from '../../src/engine/runtime.ts';
import { number, profileOf, purposeWith, run } from './samples.ts';

const above20 = { sId: '0x1', thresholds: { isGt: 20 } };

describe('a firing', () => {
  const profile = profileOf(
    purposeWith({
      evId: 5,
      name: 'Too warm',
      eventLog: true,
      actions: { cloud: { sendPush: true }, display: { showText: 'HOT' } },
      causes: [
        {
          ...above20,
          orderId: 2,
          threshold: { count: 2, decimalAcc: 1 },
          measurement: { count: 3 },
        },
        { sId: '0x2', orderId: 1, threshold: { negate: true }, thresholds: { isOneOf: [1] } },
      ],
    }),
  );
  const measurements = [number(25, 1), number(19, 2), number(21.25, 3), number(0, 4, '0x2')];

  test('carries the event as it is recorded, and why it fired', () => {
    const { evaluations } = run(profile, measurements);
    expect(evaluations.map(({ firings }) => firings.length)).toEqual([0, 0, 0, 1]);
    expect(evaluations[3]?.firings).toEqual([
      {
        name: 'Too warm',
        record: true,
        tells: 'alarm',
        isFirst: true,
        ageMs: 0,
        began: { ts: 4, arrivedTs: 4 },
        actions: {
          cloud: { sendEvent: false, sendLog: false, sendPush: true },
          display: { showText: 'HOT' },
        },
        event: {
          type: 'sense',
          ts: 4,
          cause: {
            engine: { pId: 'p', puId: 1, stId: 1, evId: 5, ts: 4 },
            senses: [
              { sId: '0x2', val: 0, ts: 4 },
              { sId: '0x1', val: 21.25, ts: 3 },
            ],
          },
          why: [
            {
              sId: '0x2',
              orderId: 1,
              thresholds: { isOneOf: [1] },
              compared: 0,
              negate: true,
              matched: 1,
              of: 1,
              needed: 1,
            },
            {
              sId: '0x1',
              orderId: 2,
              thresholds: { isGt: 20 },
              compared: 21.3,
              negate: false,
              matched: 2,
              of: 3,
              needed: 2,
            },
          ],
        },
      },
    ]);
  });

  test('distinguishes the first firing of an episode from later ones, and reports when it ends', () => {
    const ringing = profileOf(
      purposeWith({ evId: 1, causes: [above20], actions: { cloud: { sendPush: true } } }),
    );
    const { evaluations } = run(ringing, [
      number(21, 1),
      number(22, 2),
      number(0, 3),
      number(21, 4),
    ]);
    const firings = evaluations.flatMap((evaluation) => evaluation.firings);
    expect(firings.map(({ tells, isFirst }) => [tells, isFirst])).toEqual([
      ['alarm', true],
      ['alarm', false],
      ['alarm', true],
    ]);
    expect(evaluations.map(({ ended }) => ended)).toEqual([
      [],
      [],
      [{ puId: 1, stId: 1, evId: 1 }],
      [],
    ]);
  });

  const pushing = { cloud: { sendPush: true } };
  const isAny = { sId: '0x1', thresholds: { isAny: true } };
  test.each([
    ['nobody, if nobody is notified', { causes: [above20] }, 'nobody'],
    ['an alarm, for a push', { causes: [above20], actions: pushing }, 'alarm'],
    ['a silent alarm', { causes: [above20], actions: { alarm: true } }, 'silent-alarm'],
    ['a notice, for any value', { causes: [isAny], actions: pushing }, 'notice'],
    ['a notice, by choice', { causes: [above20], actions: { ...pushing, alarm: false } }, 'notice'],
    ['an alarm, by choice', { causes: [isAny], actions: { ...pushing, alarm: true } }, 'alarm'],
  ])('concerns %s', (_name, event, tells) => {
    const { evaluations } = run(profileOf(purposeWith({ evId: 1, ...event })), [
      number(21, 1),
      number(22, 2),
    ]);
    const firings = evaluations.flatMap((evaluation) => evaluation.firings);
    expect(firings.map((firing) => firing.tells)).toEqual([tells, tells]);
    for (const { event } of firings) expect(event).not.toHaveProperty('notified');
  });

  test('that leads back to the initial state is a notice', () => {
    const push = (gotoStId: number) => ({ ...pushing, engine: { gotoStId } });
    const states = [
      { stId: 1, events: [{ evId: 1, causes: [above20], actions: push(2) }] },
      { stId: 2, events: [{ evId: 1, causes: [above20], actions: push(1) }] },
    ];
    const { evaluations } = run(profileOf(Purpose.parse({ puId: 1, initStId: 1, states })), [
      number(21, 1),
      number(22, 2),
    ]);
    expect(evaluations.map(({ firings }) => firings[0]?.tells)).toEqual(['alarm', 'notice']);
  });

  test('reports thresholds without their long lists', () => {
    const isNotIn = Array.from({ length: 17 }, (_, index) => index);
    const isOneOf = isNotIn.slice(1).map((value) => value + 20);
    const long = profileOf(
      purposeWith({ evId: 1, causes: [{ sId: '0x1', thresholds: { isOneOf, isNotIn } }] }),
    );
    const { firings } = evaluate(long, startRuntime(long, 0), number(30, 1));
    expect(firings[0]?.event.why).toMatchObject([{ compared: 30, thresholds: { isOneOf } }]);
    expect(firings[0]?.event.why?.[0]?.thresholds).not.toHaveProperty('isNotIn');
  });

  test('carries no compared number for a position', () => {
    const anywhere = profileOf(
      purposeWith({ evId: 1, causes: [{ sId: '0x1', thresholds: { isAny: true } }] }),
    );
    const { firings } = evaluate(anywhere, startRuntime(anywhere, 0), {
      sId: '0x1',
      val: { lat: 1, long: 2 },
      ts: 1,
    });
    expect(firings[0]?.event.why?.[0]).not.toHaveProperty('compared');
  });
});

describe('a move', () => {
  const twoPurposes = profileOf(
    Purpose.parse({
      puId: 1,
      initStId: 1,
      states: [
        { stId: 1 },
        {
          stId: 9,
          isGlobal: true,
          events: [{ evId: 4, causes: [above20], actions: { engine: { gotoPuId: 2 } } }],
        },
      ],
    }),
    Purpose.parse({ puId: 2, initStId: 6, states: [{ stId: 6 }] }),
  );

  test('carries the event that records it, caused by the event that fired', () => {
    const { evaluations } = run(twoPurposes, [number(21, 7)]);
    expect(evaluations[0]?.transition).toEqual({
      to: { puId: 2, stId: 6 },
      event: {
        type: 'device',
        ts: 7,
        event: 'purposeChanged',
        cause: { engine: { pId: 'p', puId: 1, stId: 9, evId: 4, ts: 7 } },
        oldValue: 1,
        newValue: 2,
      },
    });
  });

  test('carries no event if the state stays the same', () => {
    const again = profileOf(
      purposeWith({ evId: 1, causes: [above20], actions: { engine: { gotoStId: 1 } } }),
    );
    const { evaluations } = run(again, [number(21, 1)]);
    expect(evaluations[0]?.transition).toEqual({ to: { puId: 1, stId: 1 } });
  });

  test('to a place that the profile lacks has no effect', () => {
    const lost = profileOf(
      purposeWith({ evId: 1, causes: [above20], actions: { engine: { gotoPuId: 3 } } }),
      { ...purposeWith(), puId: 3, initStId: 77 },
    );
    const { evaluations, runtime } = run(lost, [number(21, 1)]);
    expect(evaluations[0]?.firings).toHaveLength(1);
    expect(evaluations[0]).not.toHaveProperty('transition');
    expect(runtime).toMatchObject({ puId: 1, stId: 1 });
  });
});

test('an event is found by its place', () => {
  const profile = profileOf(purposeWith({ evId: 5, name: 'Five', causes: [] }));
  expect(findEvent(profile, { puId: 1, stId: 1 }, 5)).toMatchObject({ evId: 5, name: 'Five' });
  expect(findEvent(profile, { puId: 1, stId: 1 }, 6)).toBeNull();
  expect(findEvent(profile, { puId: 1, stId: 2 }, 5)).toBeNull();
});

test('the difference of very large numbers stays a number', () => {
  const profile = profileOf(
    purposeWith({
      evId: 1,
      causes: [{ sId: '0x1', threshold: { relative: true }, thresholds: { isGt: 1e308 } }],
    }),
  );
  const { evaluations } = run(profile, [number(-1.7e308, 1), number(1.7e308, 2)]);
  expect(evaluations[1]?.firings[0]?.event.why?.[0]?.compared).toBe(Number.MAX_VALUE);
});
