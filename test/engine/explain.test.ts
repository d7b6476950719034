import { expect, test } from 'vitest';
import { describeEvaluation, Description, explain } from '../../src/engine/explain.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { startRuntime } from '../../src/engine/runtime.ts';
import { number, profileOf, run, type Standing } from './samples.ts';

const profile = profileOf(
  Purpose.parse({
    puId: 1,
    initStId: 1,
    states: [
      {
        stId: 9,
        isGlobal: true,
        events: [
          { evId: 1, name: 'Anything', causes: [{ sId: '0x3', thresholds: { isAny: true } }] },
        ],
      },
      {
        stId: 1,
        events: [
          {
            evId: 2,
            name: 'Too warm',
            actions: { cloud: { sendPush: true } },
            causes: [
              {
                sId: '0x1',
                measurement: { count: 5 },
                threshold: { count: 3, relative: true, decimalAcc: 1 },
                thresholds: { isGt: 5 },
              },
              { sId: '0x2', orderId: 1, threshold: { negate: true }, thresholds: { isGt: 0 } },
            ],
          },
        ],
      },
      { stId: 2, events: [{ evId: 3, causes: [] }] },
    ],
  }),
);

test('says for each live event, in order, what its causes have and still lack', () => {
  const measurements = [
    number(10, 1),
    number(16, 2),
    number(11, 3),
    number(15.06, 4),
    number(-1, 5, '0x2'),
  ];
  const { runtime, seen } = run(profile, measurements);
  const explanation = explain(profile, runtime, seen);
  expect(explanation).toEqual({
    pId: 'p',
    puId: 1,
    stId: 1,
    events: [
      {
        stId: 1,
        evId: 2,
        name: 'Too warm',
        isGlobal: false,
        rung: false,
        causes: [
          {
            sId: '0x1',
            orderId: 0,
            thresholds: { isGt: 5 },
            negate: false,
            relative: true,
            decimalAcc: 1,
            baseline: 10,
            matched: 2,
            of: 4,
            windowLength: 5,
            needed: 3,
            missing: 1,
            holds: false,
            agreed: { val: 15.06, ts: 4, compared: 5.1 },
            seen: { val: 15.06, ts: 4 },
          },
          {
            sId: '0x2',
            orderId: 1,
            thresholds: { isGt: 0 },
            negate: true,
            relative: false,
            matched: 1,
            of: 1,
            windowLength: 1,
            needed: 1,
            missing: 0,
            holds: true,
            agreed: { val: -1, ts: 5, compared: -1 },
            seen: { val: -1, ts: 5 },
          },
        ],
      },
      {
        stId: 9,
        evId: 1,
        name: 'Anything',
        isGlobal: true,
        rung: false,
        causes: [
          {
            sId: '0x3',
            orderId: 0,
            thresholds: { isAny: true },
            negate: false,
            relative: false,
            matched: 0,
            of: 0,
            windowLength: 1,
            needed: 1,
            missing: 1,
            holds: false,
          },
        ],
      },
    ],
  });
  const described = describeEvaluation(profile, explanation, { nowTs: 0 });
  expect(Description.parse(described)).toEqual(described);
});

test('says that an episode has rung, and that the windows were used up', () => {
  const warm = [11, 17, 18, 19].map((val, ts) => number(val, ts));
  const { runtime, seen, evaluations } = run(profile, [...warm, number(-1, 5, '0x2')]);
  expect(evaluations.at(-1)?.firings).toHaveLength(1);
  const [event] = explain(profile, runtime, seen).events;
  expect(event).toMatchObject({
    rung: true,
    causes: [
      { matched: 0, missing: 3, baseline: 11, seen: { val: 19, ts: 3 } },
      { matched: 0, missing: 1 },
    ],
  });
});

test('lists nothing if there are no events', () => {
  expect(explain(profile, { ...startRuntime(profile, 0), puId: 5 }, {}).events).toEqual([]);
});

test('does not show a match that no longer counts', () => {
  const before = run(profile, [number(10, 1), number(16, 2)]);
  const explainCause = ({ runtime, seen }: Standing) =>
    explain(profile, runtime, seen).events[0]?.causes[0];
  expect(explainCause(before)).toMatchObject({ agreed: { val: 16 } });
  const later = [11, 12, 13, 14, 15].map((val, index) => number(val, index + 3));
  expect(explainCause(run(profile, later, before))).not.toHaveProperty('agreed');
});

test('says of groups of causes how many hold of each', () => {
  const anyOf = [
    [{ sId: '0x1', thresholds: { isGt: 8 } }],
    [
      { sId: '0x1', thresholds: { isGt: 5 } },
      { sId: '0x2', thresholds: { isGt: 5 } },
    ],
  ];
  const states = [{ stId: 1, events: [{ evId: 1, anyOf }] }];
  const grouped = profileOf(Purpose.parse({ puId: 1, initStId: 1, states }));
  const { runtime, seen } = run(grouped, [number(6, 1)]);
  const described = describeEvaluation(grouped, explain(grouped, runtime, seen), { nowTs: 1 });
  expect(described.events).toMatchObject([
    {
      text: 'fires when all causes of one group hold, 0 of 1 or 1 of 2 do',
      causes: [
        { group: 0, holds: false },
        { group: 1, holds: true },
        { group: 1, holds: false },
      ],
    },
  ]);
  expect(Description.parse(described)).toEqual(described);
});
