import { describe, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';

const cause = { sId: '0x1', thresholds: { isAny: true } };
const minimal = { puId: 1, initStId: 2, states: [{ stId: 2 }] };

function problemsOf(purpose: unknown): [string, string][] {
  const { error } = Purpose.safeParse(purpose);
  return (error?.issues ?? []).map((issue) => [`/${issue.path.join('/')}`, issue.message]);
}
const pathsOf = (purpose: unknown) => problemsOf(purpose).map(([path]) => path);
const withEvent = (event: object) => ({ ...minimal, states: [{ stId: 2, events: [event] }] });
const withCause = (over: object) => withEvent({ evId: 1, causes: [{ ...cause, ...over }] });

describe('a purpose is refused', () => {
  const event = { evId: 1 };
  const cases: [string, unknown, string[]][] = [
    ['without puId', { ...minimal, puId: undefined }, ['/puId']],
    ['without initStId', { ...minimal, initStId: undefined }, ['/initStId']],
    ['without states', { ...minimal, states: undefined }, ['/states']],
    ['without stId', { ...minimal, states: [{ stId: 2 }, {}] }, ['/states/1/stId']],
    ['without evId', withEvent({}), ['/states/0/events/0/evId']],
    ['without sId', withEvent({ evId: 1, causes: [{}] }), ['/states/0/events/0/causes/0/sId']],
    [
      'with two states of one stId',
      { ...minimal, states: [{ stId: 2 }, { stId: 2 }] },
      ['/states/1/stId'],
    ],
    [
      'with two events of one evId in a state',
      { ...minimal, states: [{ stId: 2, events: [event, { evId: 2 }, event] }] },
      ['/states/0/events/2/evId'],
    ],
    ['with an initStId that no state has', { ...minimal, initStId: 9 }, ['/initStId']],
    [
      'with a gotoStId that no state has',
      withEvent({ evId: 1, actions: { engine: { gotoStId: 9 } } }),
      ['/states/0/events/0/actions/engine/gotoStId'],
    ],
    ['with numbers that are text', { ...minimal, puId: '1' }, ['/puId']],
    ['with fractions', { ...minimal, puId: 1.5 }, ['/puId']],
    ['with numbers beyond 32 bits', { ...minimal, puId: 2 ** 31 }, ['/puId']],
    [
      'with booleans that are text',
      { ...minimal, states: [{ stId: 2, isGlobal: 'true' }] },
      ['/states/0/isGlobal'],
    ],
    ['with a NUL in a name', { ...minimal, name: 'a\0b' }, ['/name']],
    ['with null', { ...minimal, name: null }, ['/name']],
    ['that is no object', 5, ['/']],
  ];
  test.each(cases)('%s', (_name, purpose, paths) => {
    expect(pathsOf(purpose)).toEqual(paths);
  });

  const anyOf = (groups: unknown, more: object = {}) =>
    withEvent({ evId: 1, anyOf: groups, ...more });
  const group = '/states/0/events/0/anyOf';
  const lists = [Array.from({ length: 17 }, () => cause), Array.from({ length: 16 }, () => cause)];
  test.each<[string, unknown, string[]]>([
    ['both causes and groups of causes', anyOf([[cause]], { causes: [cause] }), [group]],
    ['no group', anyOf([]), [group]],
    ['a group without causes', anyOf([[cause], []]), [`${group}/1`]],
    ['a list that is no group', anyOf([cause]), [`${group}/0`]],
    ['33 causes in two groups', anyOf(lists), [group]],
    ['a wrong cause in a group', anyOf([[cause], [cause, {}]]), [`${group}/1/1/sId`]],
    [
      'contradicting conditions on time in a group',
      anyOf([[{ sId: '0x1', threshold: { noneForMs: 1_000, count: 2 } }]]),
      [`${group}/0/0/threshold/count`],
    ],
  ])('with %s', (_name, purpose, paths) => {
    expect(pathsOf(purpose)).toEqual(paths);
  });

  test('but not with 32 causes in two groups, nor with none beside them', () => {
    expect(pathsOf(anyOf([lists[1], lists[1]], { causes: [] }))).toEqual([]);
  });

  const at = '/states/0/events/0/causes/0';
  const triangle = [
    { lat: 0, long: 0 },
    { lat: 0, long: 1 },
    { lat: 1, long: 0 },
  ];
  const causes: [string, object, string[]][] = [
    ['isGt as text', { thresholds: { isGt: '5' } }, [`${at}/thresholds/isGt`]],
    ['isLt as text', { thresholds: { isLt: '5' } }, [`${at}/thresholds/isLt`]],
    ['isOneOf as a number', { thresholds: { isOneOf: 5 } }, [`${at}/thresholds/isOneOf`]],
    ['isOneOf with text', { thresholds: { isOneOf: [1, '2'] } }, [`${at}/thresholds/isOneOf/1`]],
    ['isNotIn as a number', { thresholds: { isNotIn: 5 } }, [`${at}/thresholds/isNotIn`]],
    ['isAny as a number', { thresholds: { isAny: 1 } }, [`${at}/thresholds/isAny`]],
    [
      'two polygon points',
      { thresholds: { isInsideGeo: triangle.slice(1) } },
      [`${at}/thresholds/isInsideGeo`],
    ],
    [
      'a place off the globe',
      { thresholds: { isInsideGeo: [...triangle, { lat: 91, long: 181 }] } },
      [`${at}/thresholds/isInsideGeo/3/lat`, `${at}/thresholds/isInsideGeo/3/long`],
    ],
    ['a count of 0', { threshold: { count: 0 } }, [`${at}/threshold/count`]],
    ['a count above 1,000', { threshold: { count: 1_001 } }, [`${at}/threshold/count`]],
    [
      'a measurement count above 1,000',
      { measurement: { count: 1_001 } },
      [`${at}/measurement/count`],
    ],
    ['negative decimals', { threshold: { decimalAcc: -1 } }, [`${at}/threshold/decimalAcc`]],
    [
      'another text for measurement.log',
      { measurement: { log: 'yes' } },
      [`${at}/measurement/log`],
    ],
  ];
  test.each(causes)('with %s', (_name, over, paths) => {
    expect(pathsOf(withCause(over))).toEqual(paths);
  });

  const many = (count: number, key: string, over = {}) =>
    Array.from({ length: count }, (_, index) => ({ [key]: index, ...over }));
  const sizes: [string, unknown, string[]][] = [
    ['257 states', { ...minimal, states: many(257, 'stId') }, ['/states']],
    [
      '65 events in a state',
      { ...minimal, states: [{ stId: 2, events: many(65, 'evId') }] },
      ['/states/0/events'],
    ],
    [
      '33 causes in an event',
      withEvent({ evId: 1, causes: many(33, 'orderId', cause) }),
      ['/states/0/events/0/causes'],
    ],
    [
      '11 telephone numbers',
      withEvent({
        evId: 1,
        actions: { sms: { phoneNumber: Array.from({ length: 11 }, () => '+42') } },
      }),
      ['/states/0/events/0/actions/sms/phoneNumber'],
    ],
    ['more than 256 KiB', { ...minimal, name: 'é'.repeat(131_072) }, ['/']],
  ];
  test.each(sizes)('with %s', (_name, purpose, paths) => {
    expect(pathsOf(purpose)).toEqual(paths);
  });

  test.each([
    [
      '220 KiB that grow beyond 256 with what is filled in',
      {
        ...minimal,
        states: many(100, 'stId', { events: many(60, 'evId', { causes: [{ sId: '0x1' }] }) }),
      },
    ],
    ['256 states', { ...minimal, states: many(256, 'stId') }],
    ['64 events in a state', { ...minimal, states: [{ stId: 2, events: many(64, 'evId') }] }],
    ['32 causes in an event', withEvent({ evId: 1, causes: many(32, 'orderId', cause) })],
    [
      'a gotoStId of another purpose',
      withEvent({ evId: 1, actions: { engine: { gotoStId: 9, gotoPuId: 2 } } }),
    ],
    [
      'one evId in two states',
      {
        ...minimal,
        states: [
          { stId: 2, events: [event] },
          { stId: 3, events: [event] },
        ],
      },
    ],
  ])('but not with %s', (_name, purpose) => {
    expect(problemsOf(purpose)).toEqual([]);
  });

  test('for everything that is wrong with it at once', () => {
    const purpose = {
      puId: 1.5,
      initStId: 7,
      states: [{ stId: 2, isGlobal: 1, events: [event, event] }, { stId: 2 }, 5],
    };
    expect(pathsOf(purpose).toSorted()).toEqual([
      '/initStId',
      '/puId',
      '/states/0/events/1/evId',
      '/states/0/isGlobal',
      '/states/1/stId',
      '/states/2',
    ]);
  });
});
