import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Configuration } from '../../src/contract/configuration.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { warnOfUnknown, warnOfUnknownTo } from '../../src/contract/warnings.ts';

const purposeOf = (event: object, state: object = {}) => ({
  puId: 1,
  initStId: 1,
  states: [{ stId: 1, events: [{ evId: 1, ...event }], ...state }],
});
const causeOf = (thresholds: object, cause: object = {}) =>
  purposeOf({ causes: [{ sId: '0x1', thresholds, ...cause }] });
const meant = (schema: z.ZodType, value: unknown) =>
  warnOfUnknown(schema, value).map(({ path, meant }) => [path, meant]);

const at = '/states/0/events/0';
const thresholdsAt = `${at}/causes/0/thresholds`;

describe('an unknown member is reported at its place, with what was probably meant', () => {
  test.each<[string, string | undefined]>([
    ...['isAbove', 'above', 'gt', 'greaterThan', 'min'].map((name): [string, string] => [
      name,
      'isGt',
    ]),
    ...['isBelow', 'below', 'lt', 'lessThan', 'max'].map((name): [string, string] => [
      name,
      'isLt',
    ]),
    ...['equals', 'isEqual'].map((name): [string, string] => [name, 'isOneOf']),
    ['isGT', 'isGt'],
    ['isLtt', 'isLt'],
    ['is_not_in', 'isNotIn'],
    ['isInsdieGeo', 'isInsideGeo'],
    ['wholly different', undefined],
  ])('in a condition: %s', (name, known) => {
    expect(meant(Purpose, causeOf({ [name]: 5 }))).toEqual([[`${thresholdsAt}/${name}`, known]]);
  });

  test.each([
    [
      'a member of an action',
      purposeOf({ actions: { sms: { phoneNumbers: [] } } }),
      `${at}/actions/sms/phoneNumbers`,
      'phoneNumber',
    ],
    ['a channel', purposeOf({ actions: { email: {} } }), `${at}/actions/email`, 'cloud.sendPush'],
    [
      'one level too far out',
      purposeOf({ actions: { sendPush: true } }),
      `${at}/actions/sendPush`,
      'cloud.sendPush',
    ],
    [
      'a condition beside thresholds',
      causeOf({}, { isGt: 1 }),
      `${at}/causes/0/isGt`,
      'thresholds.isGt',
    ],
    [
      'a synonym beside thresholds',
      causeOf({}, { above: 1 }),
      `${at}/causes/0/above`,
      'thresholds.isGt',
    ],
    ['too deep', causeOf({ negate: true }), `${thresholdsAt}/negate`, undefined],
    [
      'too deep, known in an enclosing object',
      causeOf({ senseLog: true }),
      `${thresholdsAt}/senseLog`,
      'senseLog further out',
    ],
  ])('%s', (_name, value, path, known) => {
    expect(meant(Purpose, value)).toEqual([[path, known]]);
  });

  test('in an optional value, an array, a union or a refined schema; pointers are escaped', () => {
    const schema = z
      .object({
        list: z.array(
          z.union([z.object({ a: z.int() }), z.object({ b: z.object({ c: z.int() }) })]),
        ),
        maybe: z.object({ d: z.int() }).nullable().optional().default(null),
        free: z.record(z.string(), z.int()),
      })
      .refine(() => true);
    const value = {
      list: [{ a: 1, e: 1 }, { b: { c: 1, d: 1 } }, 5, [{ z: 1 }]],
      maybe: { 'd/~': 1 },
      free: { any: 1 },
    };
    expect(warnOfUnknown(schema, value).map(({ path }) => path)).toEqual([
      '/list/0/e',
      '/list/1/b/d',
      '/maybe/d~1~0',
    ]);
  });

  test('in words: what happens, and what to write', () => {
    const [warned] = warnOfUnknown(Purpose, causeOf({ isAbove: 5 }));
    expect(warned).toEqual({
      path: `${thresholdsAt}/isAbove`,
      code: 'unknown-member',
      message: 'unknown member isAbove has no effect; did you mean isGt?',
      meant: 'isGt',
    });
  });
});

test('members that begin with x- are ignored, with their content', () => {
  const value = causeOf({ 'x-note': { isAbove: 1 }, isGt: 1 }, { 'x-': 1 });
  expect(warnOfUnknown(Purpose, value)).toEqual([]);
});

test('an answer can be sent back if it is known there too', () => {
  const read = z.object({ state: z.object({ puId: z.int() }), timestamp: z.int() });
  const warn = warnOfUnknownTo(Configuration, read);
  const answer = { device: {}, module: [], state: { puId: 1 }, timestamp: 1 };
  expect(warn(Configuration, answer)).toEqual([]);
  expect(warn(Configuration, { ...answer, state: { puid: 1 }, stat: 1 })).toMatchObject([
    { path: '/state/puid', meant: 'puId' },
    { path: '/stat', meant: 'state' },
  ]);
});

test('a hundred are enough, and no value is too wrong to be checked', () => {
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`member-${n}`, {}]));
  expect(warnOfUnknown(Purpose, { ...many, states: [many] })).toHaveLength(100);
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(warnOfUnknown(Purpose, value).length).toBeLessThanOrEqual(100);
      expect(warnOfUnknown(Purpose, { states: [{ events: [value] }] }).length).toBeLessThan(101);
    }),
  );
});

test('what parsing keeps is known: a parsed purpose causes no warning', () => {
  const value = {
    ...causeOf({ isGt: 1, isInsideGeo: undefined }, { measurement: { log: 'true', count: 2 } }),
    name: 'one',
  };
  expect(warnOfUnknown(Purpose, value)).toEqual([]);
  expect(warnOfUnknown(Purpose, Purpose.parse(value))).toEqual([]);
});
