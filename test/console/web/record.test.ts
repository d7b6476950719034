import { expect, test, vi } from 'vitest';
import { gapsIn, knownFrom } from '../../../src/console/web/pages/device/chart/points.ts';
import { monthOf } from '../../../src/console/web/pages/record/record.ts';

// What the page's modules look at when they are loaded.
vi.hoisted(() =>
  Object.assign(globalThis, {
    location: { pathname: '/console/', search: '' },
    addEventListener: () => {},
    document: { documentElement: {}, addEventListener: () => {} },
  }),
);

const quarter = 900_000;
const bucket = (at: number) => ({
  sId: '0x10',
  ts: at * quarter,
  min: 1,
  max: 1,
  avg: 1,
  count: 1,
  last: 1,
});

test.each([
  ['none', [0, 1, 2, 3, 4], 5, []],
  ['two quarters are not one', [0, 1, 2, 5, 6], 7, []],
  ['three are', [0, 1, 2, 6], 7, [[3, 6]]],
  [
    'before the first and after the last',
    [4, 5, 6],
    12,
    [
      [0, 4],
      [7, 12],
    ],
  ],
  ['an hour between all is usual', [0, 4, 8], 10, []],
  ['no value at all', [], 12, [[0, 12]]],
  ['after one alone: half an hour', [0], 3, []],
  ['after one alone: three quarters', [0], 4, [[1, 4]]],
])('times without values: %s', (_, places, end, gaps) => {
  const found = gapsIn(
    { points: places.map(bucket), widthMs: quarter },
    { start: 0, end: end * quarter },
  );
  expect(found.map(({ start, end }) => [start / quarter, end / quarter])).toEqual(gaps);
});

test.each([
  ['it was added in the quarter of its first value', 7, 0, 7],
  ['it had measured before', 40, 0, 0],
  ['it has measured nothing', 7, undefined, 7],
])('nothing is missed from a device before there was one: %s', (_, minutes, first, known) => {
  const at = (of: number) => of * 60_000;
  expect(knownFrom(at(minutes), { firstTs: first, widthMs: quarter })).toBe(at(known));
});

const nowTs = Date.UTC(2026, 10, 27);
test.each([
  ['2026-10', '2026-09-30T22:00:00.000Z', '2026-10-31T23:00:00.000Z'],
  ['2027-01', '2026-10-31T23:00:00.000Z', '2026-11-30T23:00:00.000Z'],
  ['2026-13', '2026-10-31T23:00:00.000Z', '2026-11-30T23:00:00.000Z'],
  ['x', '2026-10-31T23:00:00.000Z', '2026-11-30T23:00:00.000Z'],
])('the month of %s in Berlin', (text, start, end) => {
  const found = monthOf(text, nowTs, 'Europe/Berlin');
  expect([found.start, found.end].map((ts) => new Date(ts).toISOString())).toEqual([start, end]);
});
