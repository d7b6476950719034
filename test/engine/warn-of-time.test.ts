import { describe, expect, test } from 'vitest';
import type { Sense } from '../../src/contract/configuration.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { listWarnings } from '../../src/engine/warnings.ts';
import { purposeWith } from './samples.ts';

const own = () => '';
const minute = 60_000;
const push = { cloud: { sendPush: true } };
const anything = { sId: '0x1', thresholds: { isAny: true } };
const high = { sId: '0x1', thresholds: { isGt: 5 } };
const silent = { sId: '0x1', threshold: { noneForMs: 15 * minute } };

/** The warnings for an event with these causes and actions, by JSON Pointer below the event. */
function saidOf(causes: object[], actions: object = {}, devices?: Sense[][]) {
  const event = { evId: 1, eventLog: true, causes, actions };
  const warnings = listWarnings([purposeWith(event)], devices, own);
  const at = '/states/0/events/0';
  return Object.fromEntries(
    // The message ends with what to write instead, by its code.
    warnings.map(({ path, message }) => [path.replace(at, ''), message.split('; ')[0]] as const),
  );
}

describe('warns of a notice at every firing', () => {
  test('if any measurement meets all causes', () => {
    const said = saidOf([anything], push);
    expect(said).toEqual({ '': expect.stringContaining('people are notified at each firing') });
  });

  test.each([
    ['nobody is notified', [anything], {}],
    ['it is intended', [anything], { ...push, alarm: false }],
    ['a cause waits for something', [anything, high], push],
    ['a cause lasts', [{ ...anything, threshold: { forMs: minute } }], push],
  ])('but not if %s', (_, causes, actions) => {
    expect(saidOf(causes, actions)).toEqual({});
  });

  test('nor if the event moves the device, as "heard again" does', () => {
    const states = [
      { stId: 1, events: [{ evId: 1, causes: [silent], actions: { engine: { gotoStId: 2 } } }] },
      {
        stId: 2,
        events: [{ evId: 1, causes: [anything], actions: { ...push, engine: { gotoStId: 1 } } }],
      },
    ];
    expect(listWarnings([Purpose.parse({ puId: 1, initStId: 1, states })])).toEqual([]);
  });
});

describe('warns of an alarm member without effect:', () => {
  const none = 'it has no effect: nobody is notified of this event';
  test.each([
    ['repeatMs, if nobody is notified', [high], { repeatMs: minute }, none],
    ['keepMs, if nobody is notified', [high], { keepMs: minute }, none],
    ['repeatMs of an alarm that is only listed', [high], { alarm: true, repeatMs: minute }, none],
    [
      'repeatMs of a notice',
      [high],
      { ...push, alarm: false, repeatMs: minute },
      'it has no effect: a notice is sent once and is not kept',
    ],
    [
      'keepMs of a notice',
      [high],
      { ...push, alarm: false, keepMs: minute },
      'it has no effect: a notice is sent once and is not kept',
    ],
  ])('%s', (_, causes, actions, message) => {
    const member = 'repeatMs' in actions ? 'repeatMs' : 'keepMs';
    expect(saidOf(causes, actions)).toEqual({ [`/actions/${member}`]: message });
  });

  test('an alarm that no measurement ends', () => {
    expect(saidOf([anything], { ...push, alarm: true })).toEqual({
      '/actions/alarm':
        'no measurement ends this alarm, because any measurement satisfies its causes',
    });
  });

  test.each([
    ['repeatMs and keepMs of an alarm', [high], { ...push, repeatMs: minute, keepMs: minute }],
    ['keepMs of an alarm that is only listed', [high], { alarm: true, keepMs: minute }],
    ['an alarm on silence', [silent], { ...push, alarm: true, repeatMs: minute }],
  ])('but not %s', (_, causes, actions) => {
    expect(saidOf(causes, actions)).toEqual({});
  });
});

describe('warns of a time below the known interval:', () => {
  const seconds = (count: number) => count * 1_000;
  const lasting = (forMs: number, interval?: number) => ({
    ...high,
    threshold: { forMs },
    measurement: { interval },
  });

  test('forMs, compared with measurement.interval', () => {
    const at = '/causes/0/threshold/forMs';
    expect(saidOf([lasting(seconds(59), minute)])).toEqual({
      [at]: 'it is shorter than the interval (0x1 is measured every 1 min), so a single measurement is enough',
    });
    expect(saidOf([lasting(minute, minute)])).toEqual({});
  });

  test('forMs, compared with the slowest chosen sense', () => {
    const devices = [[{ sId: '0x1' }], [{ sId: '0x1', minInterval: 5 * minute }], []];
    expect(Object.keys(saidOf([lasting(minute)], {}, devices))).toEqual([
      '/causes/0/threshold/forMs',
    ]);
    expect(saidOf([lasting(5 * minute)], {}, devices)).toEqual({});
  });

  test('noneForMs, which every normal pause would satisfy', () => {
    const devices = [[{ sId: '0x1', minInterval: 15 * minute }]];
    expect(saidOf([silent], {}, devices)).toEqual({
      '/causes/0/threshold/noneForMs': expect.stringContaining(
        'every normal pause counts as silence',
      ),
    });
    const longer = { ...silent, threshold: { noneForMs: 15 * minute + 1_000 } };
    expect(saidOf([longer], {}, devices)).toEqual({});
  });
});

test('warns of maxAgeMs for an event that looks at one measurement', () => {
  const aged = (more: object = {}) => ({ ...high, threshold: { maxAgeMs: minute, ...more } });
  expect(saidOf([aged()])).toEqual({
    '/causes/0/threshold/maxAgeMs': expect.stringContaining('it has no effect'),
  });
  expect(saidOf([aged({ count: 2 })])).toEqual({});
  expect(saidOf([aged({ forMs: 2 * minute })])).toEqual({});
  expect(saidOf([aged(), { ...high, sId: '0x2' }])).toEqual({});
});

describe('an event that waits for silence', () => {
  test('needs no thresholds', () => {
    expect(saidOf([silent], push)).toEqual({});
  });

  test('gets a warning if no chosen device has the sense', () => {
    expect(saidOf([silent], push, [[{ sId: '0x2' }]])).toEqual({
      '/causes/0/sId': 'none of the chosen devices has the sense 0x1: it is always silent',
    });
    expect(saidOf([silent], push, [[{ sId: '0x1' }]])).toEqual({});
  });
});

describe('the range of a sense limits what a statistic can become:', () => {
  const over = (stat: string, thresholds: object, more: object = {}) => ({
    sId: '0x1',
    threshold: { over: { ms: 60 * minute, stat }, ...more },
    thresholds,
  });
  const tank = [[{ sId: '0x1', min: 0, max: 100 }]];
  const never = /within the range of the sense 0x1/;

  test.each([
    ['avg', { isGt: 100 }],
    ['avg', { isLt: 0 }],
    ['delta', { isGt: 100 }],
    ['delta', { isLt: -100 }],
    ['sum', { isLt: 0 }],
    ['min', { isGt: 100 }],
    ['max', { isLt: 0 }],
    ['stddev', { isGt: 50 }],
  ])('no %s meets %j', (stat, thresholds) => {
    expect(saidOf([over(stat, thresholds)], {}, tank)['']).toMatch(never);
    expect(saidOf([over(stat, thresholds)])).toEqual({});
  });

  test.each([
    ['avg', { isGt: 99 }],
    ['delta', { isLt: -99 }],
    ['delta', { isGt: 99 }],
    ['sum', { isGt: 5_000 }],
    ['min', { isGt: 99 }],
    ['max', { isLt: 1 }],
    ['stddev', { isGt: 49 }],
  ])('but a %s can meet %j', (stat, thresholds) => {
    expect(saidOf([over(stat, thresholds)], {}, tank)).toEqual({});
  });

  test('no standard deviation is below 0, whatever the range', () => {
    expect(saidOf([over('stddev', { isLt: 0 })])['']).toMatch(/no value satisfies its cause/);
  });

  test('sums of values below 0 have no lower limit', () => {
    const frost = [[{ sId: '0x1', min: -40, max: -1 }]];
    expect(saidOf([over('sum', { isLt: -5_000 })], {}, frost)).toEqual({});
    expect(saidOf([over('sum', { isGt: -1 })], {}, frost)['']).toMatch(never);
  });
});

describe('warns of two states that send each other back and forth on silence', () => {
  const pair = (there: object, back: object) => {
    const stateOf = (stId: number, cause: object, gotoStId: number) => ({
      stId,
      events: [{ evId: 1, causes: [cause], actions: { engine: { gotoStId } } }],
    });
    const states = [stateOf(1, there, 2), stateOf(2, back, 1)];
    return listWarnings([Purpose.parse({ puId: 1, initStId: 1, states })], undefined, own);
  };

  test('once', () => {
    const what = 'this state and state 2 move a device back and forth while nothing is measured';
    expect(pair(silent, silent)).toEqual([
      {
        path: '/states/0/events/0',
        code: 'back-and-forth',
        message: expect.stringContaining(what),
      },
    ]);
  });

  test('but not if a measurement leads back', () => {
    expect(pair(silent, anything)).toEqual([]);
    expect(pair(silent, high)).toEqual([]);
  });
});
