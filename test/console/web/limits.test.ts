import { beforeAll, expect, test, vi } from 'vitest';
import type { ListedAlarm, Purpose, Sense } from '../../../src/console/web/api/types.ts';
import { aboutOf, isBeyond } from '../../../src/console/web/pages/alarms/about.ts';
import { limitsIn as limitsThen } from '../../../src/console/web/pages/device/chart/thresholds.ts';
import {
  contradictions,
  limitsIn,
  marginOf,
  withNumbers,
} from '../../../src/console/web/pages/watch/numbers.ts';
import {
  noLimit,
  noRules,
  problemsOf,
  purposeOf,
  rulesIn,
} from '../../../src/console/web/pages/watch/rules.ts';
import { speak } from '../../../src/console/web/text/t.ts';

// What the page's modules look at when they are loaded.
vi.hoisted(() =>
  Object.assign(globalThis, {
    location: { pathname: '/console/', search: '' },
    addEventListener: () => {},
    document: { documentElement: {}, addEventListener: () => {} },
  }),
);

beforeAll(() => speak('en'));

const temperature = { sId: '0x1', name: 'Temperature', unit: '°C' } as Sense;
const humidity = { sId: '0x2', name: 'Humidity', unit: '%' } as Sense;
const door = { sId: '0x3', name: 'Door', min: 0, max: 1 } as Sense;

/** An alarm of one condition, which nothing else is known of. */
const alarmOf = (thresholds: object, threshold: object = {}, val = 20) =>
  ({
    conditions: [{ sId: '0x1', name: 'Temperature', unit: '°C', thresholds, threshold }],
    firedWith: [{ sId: '0x1', val, ts: 1 }],
    extreme: [],
    values: [],
    closedTs: null,
  }) as unknown as ListedAlarm;

test('a value is beyond a limit only where it is more or less than that', () => {
  const at = { deviceAuthUuid: 'd', sId: '0x1', ts: 1, val: 20 };
  expect(isBeyond(at)).toBe(false);
  expect(isBeyond({ ...at, above: 8 })).toBe(true);
  expect(isBeyond({ ...at, above: 20, below: 20 })).toBe(false);
  expect(isBeyond({ ...at, below: 21 })).toBe(true);
  expect(isBeyond({ ...at, val: { lat: 52, long: 13 }, above: 8 })).toBe(false);
});

test('a rise is said as a rise, and the value that opened an alarm is not its peak', () => {
  const rise = alarmOf({ isGt: 3 }, { over: { ms: 3_600_000, stat: 'delta' } });
  expect(aboutOf(rise, undefined).condition).toMatch(/^Temperature: change over 1 h.* above 3/);
  expect(aboutOf(alarmOf({ isGt: 8 }), undefined)).toMatchObject({ extreme: '', peak: '' });
});

test('a profile that the form wrote is the form\u2019s also after a sensor was added', () => {
  const rules = {
    ...noRules,
    limits: { '0x1': { ...noLimit, above: 8 } },
    silentMs: 900_000,
  };
  const purposes = [purposeOf(rules, [temperature])];
  expect(rulesIn(purposes, [temperature, humidity])).toMatchObject({ silentMs: 900_000 });
  // All of them are waited for once it is saved again.
  const saved = purposeOf(rules, [temperature, humidity]);
  expect(JSON.stringify(saved)).toContain('"sId":"0x2"');
});

test('limits that the form has no field for are not taken into it', () => {
  const odd = purposeOf({ ...noRules, limits: { '0x3': { ...noLimit, on: 2 } } }, [door]);
  expect(rulesIn([odd], [door])).toBeNull();
  const rules = { ...noRules, limits: { '0x3': { ...noLimit, above: 0.5 } } };
  expect(rulesIn([purposeOf(rules, [door])], [door])).toBeNull();
  expect(limitsIn([purposeOf(rules, [door])])).toMatchObject([{ which: 'isGt', value: 0.5 }]);
});

test.each([
  [{ above: 8, back: 60 }, ['back']],
  [{ below: 50, back: 20 }, ['back']],
  [{ above: -50 }, ['above']],
  [{ below: 70 }, ['below']],
  [{ above: 60 }, ['above']],
  [{ above: 8, below: 9 }, ['below']],
  [{ above: 8, below: 2, back: 1 }, []],
])('of a sensor from -40 to 60 the limits %j are wrong in %j', (limit, fields) => {
  const sense = { ...temperature, min: -40, max: 60 };
  const wrong = problemsOf({ ...noRules, limits: { '0x1': { ...noLimit, ...limit } } }, [sense]);
  expect(wrong.map(({ field }) => field)).toEqual(fields.map((field) => `${field}:0x1`));
});

const event = (thresholds: object, gotoStId?: number, threshold?: object) => ({
  evId: 1,
  actions: gotoStId === undefined ? {} : { engine: { gotoStId } },
  causes: [{ sId: '0x1', orderId: 0, thresholds, threshold }],
});
const profile = (...states: object[]) => [{ puId: 1, initStId: 1, states }] as unknown as Purpose[];

test('limits contradict each other where a device can be in both states, whatever their names', () => {
  const named = { name: 'the same' };
  const wrongIn = (...states: object[]) => {
    const limits = limitsIn(profile(...states)) ?? [];
    return contradictions(
      limits,
      limits.map(({ value }) => value),
    ).filter((text) => text !== '');
  };
  const low = { stId: 1, ...named, events: [event({ isLt: 5 })] };
  const high = { stId: 2, ...named, events: [event({ isGt: 3 })] };
  expect(wrongIn(low, high)).toEqual([]);
  expect(wrongIn(low, { ...high, isGlobal: true })).toHaveLength(1);
  expect(wrongIn({ ...low, events: [...low.events, event({ isGt: 3 })] })).toHaveLength(1);
  // Each leads to the other.
  const forth = { stId: 1, events: [event({ isGt: 3 }, 2)] };
  expect(wrongIn(forth, { stId: 2, events: [event({ isLt: 5 }, 1)] })).toHaveLength(1);
});

test('the margin is the distance to the limit that leads back', () => {
  const limits = limitsIn(
    profile(
      { stId: 1, events: [event({ isGt: 8 }, 2)] },
      { stId: 2, events: [event({ isLt: 6.4 }, 1)] },
    ),
  );
  const marginsAt = (...values: number[]) =>
    values.map((_, place) => marginOf(limits ?? [], values, place));
  expect(marginsAt(8, 6.4)).toEqual([null, 1.6]);
  expect(marginsAt(8.1, 6.4)).toEqual([null, 1.7]);
  const alone = limitsIn(
    profile({ stId: 1, events: [event({ isGt: 8 }, 2)] }, { stId: 2, events: [] }),
  );
  expect(marginOf(alone ?? [], [8], 0)).toBeNull();
});

test('a change is no limit that its number could be typed over as one', () => {
  const change = event({ isGt: 3 }, undefined, { over: { ms: 3_600_000, stat: 'delta' } });
  expect(limitsIn(profile({ stId: 1, events: [change] }))).toBeNull();
});

test('a limit applies in a chart from when its profile did; one of before, between its alarms', () => {
  const purposes = profile({ stId: 1, events: [{ ...event({ isGt: 8 }), name: 'warm' }] });
  const installed = { pId: 'new', ts: 500, purposes } as never;
  const of = (pId: string, beganTs: number, overTs: number, isGt: number) => ({
    ...alarmOf({ isGt }),
    pId,
    beganTs,
    overTs,
    eventName: 'warm',
  });
  const alarms = [of('old', 100, 150, 6), of('old', 200, 250, 6), of('new', 600, 700, 8)];
  const drawnIn = (start: number, end: number) =>
    limitsThen({ start, end }, temperature, { profile: installed, alarms }).map(
      (each) => [each.value, each.start, Math.min(each.end, 1_000)] as const,
    );
  expect(drawnIn(0, 1_000)).toEqual([
    [8, 500, 1_000],
    [6, 100, 250],
  ]);
  expect(drawnIn(0, 400)).toEqual([[6, 100, 250]]);
  // Late values may be compared with a profile of after them.
  alarms.push(of('new', 300, 350, 8));
  expect(drawnIn(0, 400)[0]).toEqual([8, 300, 1_000]);
  expect(drawnIn(550, 1_000)).toEqual([[8, 300, 1_000]]);
  const [now] = limitsThen(
    { start: 0, end: 1_000 },
    { sId: '0x1' },
    { profile: installed, alarms: [] },
  );
  expect(now?.text).toMatch(/^warm: above 8, since /);
  // As the values of its sense are written.
  const sense = { sId: '0x1', unit: '°C', decimals: 1 };
  const [fine] = limitsThen({ start: 0, end: 1_000 }, sense, { profile: installed, alarms: [] });
  expect(fine?.text).toMatch(/^warm: above 8\.0\u00a0°C, since /);
});

test('a repeated message is not for the form; its number changes, and everything else stays', () => {
  const written = purposeOf({ ...noRules, limits: { '0x1': { ...noLimit, above: 8 } } }, [
    temperature,
  ]);
  const repeated = structuredClone(written);
  Object.assign(repeated.states[0]?.events[0]?.actions ?? {}, { repeatMs: 600_000 });
  expect(rulesIn([repeated], [temperature])).toBeNull();
  const limits = limitsIn([repeated]) ?? [];
  const [changed] = withNumbers(
    { purposes: [repeated], limits, senses: new Map([['0x1', temperature]]) },
    [9],
  );
  const event = changed?.states[0]?.events[0];
  expect(event).toMatchObject({
    actions: { repeatMs: 600_000 },
    causes: [{ thresholds: { isGt: 9 } }],
  });
});
