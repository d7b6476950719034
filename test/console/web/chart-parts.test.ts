import { expect, test } from 'vitest';
import { toCsv } from '../../../src/console/web/pages/device/chart/csv.ts';
import {
  alonePlaces,
  clusters,
  inView,
  kindOf,
  type Point,
  statesOf,
  toColumns,
  valueAt,
} from '../../../src/console/web/pages/device/chart/points.ts';

const point = (ts: number, val: number, to = val): Point => ({
  ts,
  min: val,
  max: to,
  avg: (val + to) / 2,
  last: to,
  count: 1,
});
const seriesOf = (points: Point[], widthMs = 0) => ({ sId: '0x10', widthMs, points });
const minute = 60_000;

test.each([
  ['values a minute from each other', 0, [1, 2, 3, 4], 0],
  ['an hour without', 0, [1, 2, 3, 63, 64], 1],
  ['one that is late', 0, [1, 2, 3, 5, 6], 0],
  ['two buckets apart', minute, [1, 3, 4], 0],
  ['four buckets apart', minute, [1, 2, 3, 7, 8], 1],
  ['hours between all', minute, [60, 120, 180, 240], 0],
  ['a single one', 0, [1], 0],
  ['none', 0, [], 0],
])('gaps are columns without a value: %s', (_, widthMs, minutes, gaps) => {
  const points = minutes.map((at) => point(at * minute, at));
  const [times, means = [], least = [], most = []] = toColumns(seriesOf(points, widthMs));
  expect(times).toHaveLength(minutes.length + gaps);
  expect([...times].toSorted((a, b) => a - b)).toEqual([...times]);
  for (const column of [means, least, most])
    expect([...column].filter((value) => value === null)).toHaveLength(gaps);
});

test.each([
  ['a single value', [4.2], [0]],
  ['a line', [4.2, 4.3, 4.4], []],
  ['one between gaps, and one after', [1, 2, null, 3, null, 4], [3, 5]],
  ['zero is a value', [null, 0, null], [1]],
  ['beside values of another line at other times', [1, undefined, 2, undefined], []],
  ['at the edges of another line', [undefined, 1, undefined, null, undefined, 3], [1, 5]],
  ['none', [], []],
])('a value without a line through it is a point: %s', (_, values, places) => {
  expect(alonePlaces(values)).toEqual(places);
});

test.each([
  ['its own', [1, 2], 1, 2],
  ['the last before', [1, undefined, undefined], 2, 1],
  ['the next at the left edge', [undefined, 4], 0, 4],
  ['none in a gap', [1, null, undefined, 4], 2, null],
  ['none at all', [undefined, undefined], 1, null],
])('what a pointer shows of a line without a value at that time: %s', (_, values, at, shown) => {
  expect(valueAt(values, at)).toBe(shown);
});

const limit = (value: number, isAlarm = true) => ({ value, isAlarm });
test.each([
  ['a limit that is near is in view', [4, 6], [limit(8)], false, [4, 8]],
  [
    'that of an alarm is from farther away',
    [-20.6, -19.4],
    [limit(-15), limit(-12, false)],
    false,
    [-20.6, -15],
  ],
  ['one that is far is not', [101.4, 101.6], [limit(8)], false, [101.4, 101.6]],
  ['the one of an open alarm is', [11.4, 11.6], [limit(8)], true, [8, 11.6]],
  ['of several the nearest', [11.4, 11.6], [limit(8), limit(-40)], true, [8, 11.6]],
  ['one that opens no alarm is not', [11.4, 11.6], [limit(8, false)], true, [11.4, 11.6]],
])('limits beside the values: %s', (_, [min = 0, max = 0], limits, isOpen, view) => {
  const alarms = isOpen ? [{ start: 10, end: 20 }] : [{ start: 0, end: 5 }];
  expect(inView(min, max, { limits, alarms, span: { start: 6, end: 30 } })).toEqual(view);
});

test('a CSV has a row for each value, and no name becomes a formula', () => {
  const senses = new Map([['0x10', { sId: '0x10', name: '=1+1, "x"', unit: '°C' }]]);
  const rows = [
    { deviceAuthUuid: 'a', sId: '0x10', ts: 0, val: 1.0625 },
    { deviceAuthUuid: 'b', sId: '0x10', ts: 0, val: 2 },
    { deviceAuthUuid: 'a', sId: '0x12', ts: minute, val: { lat: 52.5, long: 13.4 } },
  ];
  const devices = [
    { uuid: 'a', name: 'Van 12', senses },
    { uuid: 'b', name: 'Van 13', senses: new Map() },
  ];
  const csv = toCsv(rows, devices, 'Europe/Berlin');
  expect(csv).toBe(
    'time,device,sensor,value,unit,sId\r\n' +
      `1970-01-01T01:00:00+01:00,Van 12,"'=1+1, ""x""",1.0625,°C,0x10\r\n` +
      '1970-01-01T01:00:00+01:00,Van 13,0x10,2,,0x10\r\n' +
      '1970-01-01T01:01:00+01:00,Van 12,0x12,"52.5, 13.4",,0x12\r\n',
  );
});

test.each([
  [{ min: 0, max: 1 }, [0, 1, 1], 'switch'],
  [{ min: 0, max: 4 }, [0, 3], 'list'],
  [{ min: 0, max: 1 }, [0, 0.5], 'number'],
  [{ min: 0, max: 1, decimals: 2 }, [0, 1], 'number'],
  [{ min: 0, max: 1, unit: 'V' }, [0, 1], 'number'],
  [{ min: 0, max: 100 }, [1, 2], 'number'],
  [{}, [0, 1], 'number'],
])('a sense of %j with %j is shown as a %s', (sense, values, kind) => {
  const points = values.map((value, place) => point(place, value));
  expect(kindOf({ sId: '0x10', ...sense }, seriesOf(points))).toBe(kind);
});

test('events that would overlap are one mark, and none is lost', () => {
  const event = (timestamp: number) => ({ timestamp, eventId: String(timestamp) }) as never;
  const span = { start: 0, end: 100 };
  const found = clusters([99, 98, 50, 20, 19, 18, 1].map(event), span, 0.05);
  expect(found.map(({ ts, events }) => [ts, events.length])).toEqual([
    [99, 2],
    [50, 1],
    [20, 3],
    [1, 1],
  ]);
  expect(clusters([200, 50].map(event), span, 0.05)).toHaveLength(1);
});

const profile = {
  pId: 'p2',
  ts: 30,
  purposes: [
    {
      puId: 1,
      initStId: 1,
      states: [1, 2].map((stId) => ({ stId, name: `s${stId}`, isGlobal: false, events: [] })),
    },
  ],
};
const move = (timestamp: number, oldValue: number, newValue: number, pId = 'p2') => ({
  type: 'device' as const,
  event: 'stateChanged',
  eventId: String(timestamp),
  deviceAuthUuid: '',
  timestamp,
  oldValue,
  newValue,
  cause: { engine: { pId, puId: 1, stId: oldValue, evId: 1, ts: timestamp } },
});

test.each([
  ['none, since the profile', [], null, false, ['30-100 s1']],
  ['two', [move(60, 2, 1), move(40, 1, 2)], null, false, ['30-40 s1', '40-60 s2', '60-100 s1']],
  ['one before', [], move(-5, 1, 2), false, ['0-100 s2']],
  [
    'one of another profile',
    [move(50, 1, 2)],
    move(-5, 2, 7, 'p1'),
    false,
    ['0-50 state 1:7', '50-100 s2'],
  ],
  ['more than are known', [move(80, 2, 1), move(70, 1, 2)], null, true, ['70-80 s2', '80-100 s1']],
])('states over time, from changes of state: %s', (_, events, before, isCut, expected) => {
  const span = { start: 0, end: 100 };
  const found = statesOf({ events, before, isCut }, span, profile, (id) => `state ${id}`);
  expect(found.map(({ start, end, text }) => `${start}-${end} ${text}`)).toEqual(expected);
});
