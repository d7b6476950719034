import { describe, expect, test } from 'vitest';
import { Purpose } from '../../../src/contract/purpose.ts';
import { explore } from '../../../src/engine/explore/explore.ts';
import { findingsOf } from '../../../src/engine/explore/findings.ts';
import { replay } from './replay.ts';

const limit = (thresholds: object, threshold?: object) => ({ sId: '0x1', thresholds, threshold });
const goto = (gotoStId: number) => ({ engine: { gotoStId } });
const push = { cloud: { sendPush: true } };

/** A purpose of states, each with its events. */
const purposeOf = (...states: object[][]) =>
  Purpose.parse({
    puId: 1,
    initStId: 1,
    states: states.map((events, s) => ({
      stId: s + 1,
      events: events.map((event, e) => ({ evId: e + 1, ...event })),
    })),
  });

const found = (purpose: Purpose, bounds?: { min?: number; max?: number }) =>
  findingsOf([purpose], explore([purpose]), {
    pathOf: () => '',
    ...(bounds && { bounds: new Map([['0x1', bounds]]) }),
  });

const codes = (purpose: Purpose, bounds?: { min?: number; max?: number }) =>
  found(purpose, bounds).map(({ code, path }) => `${code} ${path}`);

describe('what can never fire:', () => {
  test('causes of one sense that exclude each other', () => {
    const both = [limit({ isGt: 8 }), limit({ isLt: 5 })];
    expect(codes(purposeOf([{ causes: both }]))).toEqual(['causes-exclude /states/0/events/0']);
    const lasting = [limit({ isGt: 8 }, { forMs: 60_000 }), limit({ isLt: 5 })];
    expect(codes(purposeOf([{ causes: lasting }]))).toEqual(['causes-exclude /states/0/events/0']);
  });

  test('not if they may hold by different measurements, or of different senses', () => {
    const oneOfThree = { ...limit({ isGt: 8 }), measurement: { count: 3 } };
    expect(codes(purposeOf([{ causes: [oneOfThree, limit({ isLt: 5 })] }]))).toEqual([]);
    const other = { ...limit({ isLt: 5 }), sId: '0x2' };
    expect(codes(purposeOf([{ causes: [limit({ isGt: 8 }), other] }]))).toEqual([]);
  });

  test('behind an event that always moves the device first', () => {
    const events = [
      { causes: [limit({ isGt: 8 })], actions: goto(2) },
      { causes: [limit({ isGt: 10 })], actions: push },
    ];
    const back = [{ causes: [limit({ isLt: 5 })], actions: goto(1) }];
    expect(codes(purposeOf(events, back))).toEqual(['never-fires /states/0/events/1']);
    expect(codes(purposeOf(events.toReversed(), back))).toEqual([]);
  });

  test('so a state that only such an event leads to is never reached', () => {
    const purpose = purposeOf(
      [
        { causes: [limit({ isGt: 8 })], actions: goto(2) },
        { causes: [limit({ isGt: 10 })], actions: goto(3) },
      ],
      [{ causes: [limit({ isLt: 5 })], actions: goto(1) }],
      [],
    );
    expect(codes(purpose)).toEqual([
      'never-fires /states/0/events/1',
      'unreachable-state /states/2',
    ]);
  });
});

describe('what fires too often:', () => {
  test('a limit that every value is beyond, as far as the sense can be', () => {
    const purpose = purposeOf([{ causes: [limit({ isGt: -50 })] }]);
    expect(codes(purpose)).toEqual([]);
    expect(codes(purpose, { min: -40, max: 85 })).toEqual([
      'fires-on-every-value /states/0/events/0',
    ]);
  });

  test('two limits that overlap move a device back and forth on one value', () => {
    const purpose = purposeOf(
      [{ causes: [limit({ isGt: 8 })], actions: goto(2) }],
      [{ causes: [limit({ isLt: 10 })], actions: goto(1) }],
    );
    const all = found(purpose);
    expect(all.map(({ code, path }) => `${code} ${path}`)).toEqual([
      'back-and-forth /states/0',
      'back-and-forth /states/1',
    ]);
    const { witness = [] } = all[0] ?? {};
    expect(witness).toEqual([{ afterMs: 60_000, sId: '0x1', val: 9, times: 6 }]);
    expect(replay([purpose], witness).left).toHaveLength(1);
    const apart = purposeOf(
      [{ causes: [limit({ isGt: 8 })], actions: goto(2) }],
      [{ causes: [limit({ isLt: 7 })], actions: goto(1) }],
    );
    expect(codes(apart)).toEqual([]);
  });

  test('people are told again and again of the same value', () => {
    const notice = { actions: { ...push, alarm: false }, causes: [limit({ isGt: 8 })] };
    expect(found(purposeOf([notice]))).toMatchObject([
      {
        code: 'told-often',
        path: '/states/0/events/0',
        message: expect.stringMatching(
          /^people are notified 60 times in an hour while 0x1 stays 9;/,
        ),
        witness: [{ afterMs: 60_000, sId: '0x1', val: 9, times: 60 }],
      },
    ]);
    expect(codes(purposeOf([{ ...notice, actions: push }]))).toEqual([]);
  });
});
