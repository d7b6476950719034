import { expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';

const minute = 60_000;
const at = '/states/0/events/0/causes/0';

/** The problems of the only cause of a purpose, by JSON Pointer. */
function problemsOf(cause: object): Record<string, string> {
  const events = [{ evId: 1, causes: [{ sId: '0x1', ...cause }] }];
  const purpose = { puId: 1, initStId: 1, states: [{ stId: 1, events }] };
  const issues = Purpose.safeParse(purpose).error?.issues ?? [];
  return Object.fromEntries(issues.map(({ path, message }) => [`/${path.join('/')}`, message]));
}

const silence = { noneForMs: 15 * minute };
const polygon = [
  { lat: 0, long: 0 },
  { lat: 0, long: 1 },
  { lat: 1, long: 0 },
];

test.each([
  [{ thresholds: { isGt: 5 } }, '/thresholds/isGt'],
  [{ thresholds: { isOneOf: [] } }, '/thresholds/isOneOf'],
  [{ thresholds: { isAny: true } }, '/thresholds/isAny'],
  [{ thresholds: { isInsideGeo: polygon } }, '/thresholds/isInsideGeo'],
  [{ threshold: { forMs: minute } }, '/threshold/forMs'],
  [{ threshold: { over: { ms: minute, stat: 'avg' } } }, '/threshold/over'],
  [{ threshold: { maxAgeMs: minute } }, '/threshold/maxAgeMs'],
  [{ threshold: { decimalAcc: 0 } }, '/threshold/decimalAcc'],
  [{ threshold: { negate: true } }, '/threshold/negate'],
  [{ threshold: { relative: true } }, '/threshold/relative'],
  [{ threshold: { count: 2 } }, '/threshold/count'],
])('noneForMs is refused beside %j', ({ thresholds, threshold }: Given, path) => {
  const problems = problemsOf({ thresholds, threshold: { ...silence, ...threshold } });
  expect(Object.keys(problems)).toEqual([at + path]);
  expect(problems[at + path]).toContain(path.split('/').at(-1));
});

type Given = { thresholds?: object; threshold?: object };

test('noneForMs is accepted beside members without effect', () => {
  const threshold = { ...silence, count: 1, negate: false, relative: false };
  const cause = { thresholds: { isAny: false }, threshold, measurement: { count: 9 } };
  expect(problemsOf(cause)).toEqual({});
});

test('every problem of a cause is reported at once, with what to write instead', () => {
  const threshold = { ...silence, forMs: minute, negate: true };
  const problems = problemsOf({ thresholds: { isGt: 5, isLt: 9 }, threshold });
  expect(problems).toEqual({
    [`${at}/thresholds/isGt`]: expect.stringContaining('another cause'),
    [`${at}/thresholds/isLt`]: expect.stringContaining('another cause'),
    [`${at}/threshold/forMs`]: expect.stringContaining('noneForMs alone sets the duration'),
    [`${at}/threshold/negate`]: expect.stringContaining('another cause'),
  });
});

test('over is refused beside relative and beside a polygon', () => {
  const threshold = { over: { ms: 60 * minute, stat: 'delta' } };
  expect(problemsOf({ thresholds: { isLt: -5 }, threshold })).toEqual({});
  expect(
    problemsOf({ thresholds: { isLt: -5 }, threshold: { ...threshold, relative: true } }),
  ).toEqual({ [`${at}/threshold/relative`]: expect.stringContaining('"delta"') });
  expect(problemsOf({ thresholds: { isInsideGeo: polygon }, threshold })).toEqual({
    [`${at}/thresholds/isInsideGeo`]: expect.stringContaining('numbers'),
  });
});

test('beside maxAgeMs a window has at most 64 measurements', () => {
  const causeOf = (count: number, measured: number, maxAgeMs?: number) => ({
    thresholds: { isGt: 1 },
    threshold: { count, maxAgeMs },
    measurement: { count: measured },
  });
  expect(problemsOf(causeOf(64, 64, minute))).toEqual({});
  expect(problemsOf(causeOf(65, 65))).toEqual({});
  expect(Object.keys(problemsOf(causeOf(65, 66, minute)))).toEqual([
    `${at}/threshold/count`,
    `${at}/measurement/count`,
  ]);
});

test.each([
  ['/forMs', { forMs: 999 }],
  ['/forMs', { forMs: 31 * 24 * 60 * minute + 1 }],
  ['/forMs', { forMs: '10m' }],
  ['/noneForMs', { noneForMs: 0 }],
  ['/maxAgeMs', { maxAgeMs: 1_000.5 }],
  ['/over/ms', { over: { ms: 59_999, stat: 'avg' } }],
  ['/over/stat', { over: { ms: minute, stat: 'median' } }],
  ['/over/stat', { over: { ms: minute } }],
  ['/over', { over: minute }],
])('refused at %s: %j', (path, threshold) => {
  const thresholds = 'noneForMs' in threshold ? {} : { isGt: 1 };
  expect(Object.keys(problemsOf({ thresholds, threshold }))).toEqual([`${at}/threshold${path}`]);
});

test.each([
  { forMs: 1_000 },
  { forMs: 31 * 24 * 60 * minute, count: 1_000 },
  { maxAgeMs: 1_000 },
  { over: { ms: minute, stat: 'sum' }, forMs: minute, negate: true, decimalAcc: 1 },
])('accepted: %j', (threshold) => {
  expect(problemsOf({ thresholds: { isGt: 1 }, threshold })).toEqual({});
});

test('a value in seconds gets an error that names milliseconds', () => {
  const forMs = problemsOf({ thresholds: { isGt: 1 }, threshold: { forMs: 600 } });
  expect(Object.values(forMs)).toEqual(['expected milliseconds, at least 1000 (1 s)']);
  const ms = 32 * 24 * 60 * minute;
  const over = problemsOf({ thresholds: { isGt: 1 }, threshold: { over: { ms, stat: 'sum' } } });
  expect(Object.values(over)).toEqual(['expected milliseconds, at most 2678400000 (31 days)']);
});

test.each([
  ['keepMs', -1],
  ['keepMs', 7 * 24 * 60 * minute + 1],
  ['repeatMs', minute - 1],
  ['repeatMs', 31 * 24 * 60 * minute + 1],
  ['alarm', 'yes'],
])('an action is refused with %s %s', (member, value) => {
  const events = [{ evId: 1, actions: { [member]: value } }];
  const purpose = { puId: 1, initStId: 1, states: [{ stId: 1, events }] };
  const issues = Purpose.safeParse(purpose).error?.issues ?? [];
  expect(issues.map(({ path }) => path.join('/'))).toEqual([`states/0/events/0/actions/${member}`]);
});
