import { describe, expect, test } from 'vitest';
import type { Sense } from '../../src/contract/configuration.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { listWarnings } from '../../src/engine/warnings.ts';
import { purposeWith } from './samples.ts';
import { warning, type WarningCode } from '../../src/contract/warnings.ts';

const own = () => '';
const event = (evId: number, thresholds: object, more: object = {}, actions: object = {}) => ({
  evId,
  causes: [{ sId: '0x1', thresholds, ...more }],
  actions,
});
const going = (evId: number, engine: object, thresholds: object = { isAny: true }) =>
  event(evId, thresholds, {}, { engine });
const purpose = (states: object[], puId = 1) => Purpose.parse({ puId, initStId: 1, states });

/** The warning for the only event of a purpose. */
function saidOf(thresholds: object, more: object = {}, devices?: Sense[][]): string | undefined {
  const warnings = listWarnings([purposeWith(event(1, thresholds, more))], devices, own);
  expect(warnings.length).toBeLessThan(2);
  if (warnings[0]) expect(warnings[0].path).toBe('/states/0/events/0');
  return warnings[0]?.message;
}

const never = (code: WarningCode, why: string) =>
  warning(code, '/states/0/events/0', `this event can never fire: ${why}`);

describe('warns of an event that can never fire:', () => {
  test('it has no causes', () => {
    expect(listWarnings([purposeWith({ evId: 1 })], undefined, own)).toEqual([
      never('event-without-causes', 'it has no causes'),
    ]);
  });

  test.each([{}, { isAny: false }])('it has no thresholds: %j', (thresholds) => {
    const { message } = never('cause-without-thresholds', 'its cause on 0x1 has no thresholds');
    expect(saidOf(thresholds)).toBe(message);
    expect(saidOf(thresholds, { threshold: { negate: true } })).toBe(message);
  });

  const triangle = [
    { lat: 0, long: 0 },
    { lat: 0, long: 1 },
    { lat: 1, long: 0 },
  ];
  test('it requires a position and a number', () => {
    expect(saidOf({ isInsideGeo: triangle, isGt: 1 })).toMatch(/a position and a number/);
  });

  test.each([
    [{ isGt: 5, isLt: 5 }, {}],
    [{ isGt: 6, isLt: 5 }, {}],
    [{ isOneOf: [] }, {}],
    [{ isOneOf: [1, 2], isGt: 2 }, {}],
    [{ isOneOf: [1, 2], isNotIn: [2, 1] }, {}],
    [{ isNotIn: [] }, { threshold: { negate: true } }],
    [{ isAny: true }, { threshold: { negate: true } }],
    [{ isGt: 5.1, isLt: 5.2 }, { threshold: { decimalAcc: 0 } }],
    [{ isGt: 1, isLt: 2 }, { threshold: { decimalAcc: 0 } }],
  ])('no value meets %j with %j', (thresholds, more) => {
    expect(saidOf(thresholds, more)).toBe(
      never('no-value-fits', 'no value satisfies its cause on 0x1').message,
    );
  });

  test.each([
    [{ isGt: 100 }, {}],
    [{ isGt: 150 }, {}],
    [{ isLt: 0 }, {}],
    [{ isOneOf: [-1, 101] }, {}],
    [{ isGt: 100 }, { threshold: { relative: true } }],
    [{ isLt: -100 }, { threshold: { relative: true } }],
    [{ isGt: -1 }, { threshold: { negate: true } }],
  ])('no value from 0 to 100 meets %j with %j', (thresholds, more) => {
    const devices = [[{ sId: '0x1', min: 0, max: 100 }]];
    expect(saidOf(thresholds, more)).toBeUndefined();
    expect(saidOf(thresholds, more, devices)).toMatch(/within the range of the sense 0x1/);
  });

  test('no chosen device has the sense', () => {
    expect(saidOf({ isAny: true }, {}, [[], [{ sId: '0x2' }]])).toBe(
      never('no-device-has-sense', 'none of the chosen devices has the sense 0x1').message,
    );
  });

  test.each([
    [{ isGt: 99 }, {}],
    [{ isLt: 1 }, {}],
    [{ isOneOf: [0] }, {}],
    [{ isOneOf: [100, 200] }, {}],
    [{ isNotIn: [0, 100] }, {}],
    [{ isGt: 99 }, { threshold: { relative: true } }],
    [{ isGt: 5, isLt: 5 }, { threshold: { negate: true } }],
    [{ isGt: 1, isLt: 3 }, { threshold: { decimalAcc: 0 } }],
    [{ isInsideGeo: triangle }, {}],
    [{ isAny: true }, {}],
  ])('but not with %j and %j, which some value from 0 to 100 meets', (thresholds, more) => {
    expect(saidOf(thresholds, more, [[{ sId: '0x1', min: 0, max: 100 }]])).toBeUndefined();
  });

  test('but not when one of the chosen devices could meet it', () => {
    const devices = [[{ sId: '0x1', max: 10 }], [{ sId: '0x1' }], []];
    expect(saidOf({ isGt: 50 }, {}, devices)).toBeUndefined();
  });

  test('but not after checking more values than a warning may', () => {
    const isOneOf = Array.from({ length: 500 }, (_, index) => index);
    expect(saidOf({ isOneOf, isGt: 1_000 })).toBeUndefined();
  });
});

describe('warns of what nothing leads to:', () => {
  const unreached = (warnings: { path: string; message: string }[]) =>
    warnings.filter(({ message }) => message.includes('leads to')).map(({ path }) => path);

  test('a state', () => {
    const states = [{ stId: 1, events: [going(1, { gotoStId: 2 })] }, { stId: 2 }, { stId: 3 }];
    expect(unreached(listWarnings([purpose(states)], undefined, own))).toEqual(['/states/2']);
  });

  test('a state that only such a state leads to', () => {
    const states = [{ stId: 1 }, { stId: 2, events: [going(1, { gotoStId: 3 })] }, { stId: 3 }];
    expect(unreached(listWarnings([purpose(states)], undefined, own))).toEqual([
      '/states/1',
      '/states/2',
    ]);
  });

  test('but not a global state, nor what its events lead to', () => {
    const states = [
      { stId: 1 },
      { stId: 9, isGlobal: true, events: [going(1, { gotoStId: 2 })] },
      { stId: 2 },
    ];
    expect(unreached(listWarnings([purpose(states)]))).toEqual([]);
  });

  test('a purpose, once for all its states', () => {
    const states = [{ stId: 1, events: [going(1, { gotoStId: 2 })] }, { stId: 2 }];
    expect(unreached(listWarnings([purpose(states), purpose(states, 2)]))).toEqual(['/purposes/1']);
  });

  test('but not what another purpose of the profile leads to', () => {
    const first = purpose([{ stId: 1, events: [going(1, { gotoPuId: 2, gotoStId: 5 })] }]);
    const second = purpose([{ stId: 1 }, { stId: 5, events: [going(1, { gotoStId: 1 })] }], 2);
    expect(unreached(listWarnings([first, second]))).toEqual([]);
  });
});

describe('warns of two states that send each other back and forth', () => {
  const swing = 'this state and state 2 move a device back and forth on any measurement';
  const pair = (there: object, back: object) =>
    listWarnings(
      [
        purpose([
          { stId: 1, events: [going(1, { gotoStId: 2 }, there)] },
          { stId: 2, events: [going(1, { gotoStId: 1 }, back)] },
        ]),
      ],
      undefined,
      own,
    );

  test('once', () => {
    expect(pair({ isAny: true }, { isAny: true })).toEqual([
      warning('back-and-forth', '/states/0/events/0', swing),
    ]);
  });

  test('but not if one of them waits for something', () => {
    expect(pair({ isAny: true }, { isGt: 5 })).toEqual([]);
    expect(pair({ isGt: 5 }, { isAny: true })).toEqual([]);
  });
});

test('a group of causes that never hold is warned of by itself, with its place', () => {
  const anyOf = [
    [{ sId: '0x1', thresholds: { isGt: 8 } }],
    [{ sId: '0x2', thresholds: { isGt: 8, isLt: 5 } }],
    [{ sId: '0x1', threshold: { noneForMs: 1_000 } }],
  ];
  const warnings = listWarnings([purposeWith({ evId: 1, anyOf })], undefined, own);
  expect(warnings.map(({ code, path }) => [code, path])).toEqual([
    ['no-value-fits', '/states/0/events/0/anyOf/1'],
    ['short-silence', '/states/0/events/0/anyOf/2/0/threshold/noneForMs'],
  ]);
  expect(warnings[0]?.message).toContain('the causes of this group never all hold');
});

test('an event with a group that any measurement meets is told each time', () => {
  const anyOf = [
    [{ sId: '0x1', thresholds: { isGt: 8 } }],
    [{ sId: '0x2', thresholds: { isAny: true } }],
  ];
  const push = { cloud: { sendPush: true } };
  const warnings = listWarnings([purposeWith({ evId: 1, anyOf, actions: push })], undefined, own);
  expect(warnings).toMatchObject([{ code: 'told-each-time' }]);
});
