import { beforeAll, expect, test, vi } from 'vitest';
import type { ListedAlarm, Purpose, Sense } from '../../../src/console/web/api/types.ts';
import { aboutOf, isBeyond } from '../../../src/console/web/pages/alarms/about.ts';
import {
  commonOf,
  fieldsOf,
  limitsOfGroups,
} from '../../../src/console/web/pages/fleet/act/limit-fields.ts';
import { limitsIn as limitsThen } from '../../../src/console/web/pages/device/chart/thresholds.ts';
import {
  contradictions,
  limitsIn,
  marginOf,
  opensAlarm,
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
  // How long it had to hold is a part of the condition.
  const held = alarmOf({ isGt: 8 }, { forMs: 600_000 });
  expect(aboutOf(held, undefined).condition).toBe('Temperature above 8\u00a0°C for 10 min');
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

test('a profile that the form wrote is the form\u2019s also if its default severity is written', () => {
  const written = purposeOf({ ...noRules, limits: { '0x1': { ...noLimit, above: 8 } } }, [
    temperature,
  ]);
  for (const { actions } of written.states[0]?.events ?? []) actions.severity = 'warning';
  expect(rulesIn([written], [temperature])?.severity).toBe('warning');
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
    limitsThen({ start, end }, temperature, { profile: installed, alarms, former: [] }).map(
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
  // Of what was in force while no alarm opened, too; one that is not kept is known by its alarms.
  const warmer = [
    purposeOf({ ...noRules, limits: { '0x1': { ...noLimit, above: 7 } } }, [temperature]),
  ];
  const former = [
    { pId: 'before', start: 20, end: 90, purposes: warmer },
    { pId: 'old', start: 90, end: 500, purposes: null },
  ];
  const known = limitsThen({ start: 0, end: 1_000 }, temperature, {
    profile: installed,
    alarms,
    former,
  });
  expect(known.map(({ value, start, end }) => [value, start, Math.min(end, 1_000)])).toEqual([
    [8, 300, 1_000],
    [7, 20, 90],
    [6, 100, 250],
  ]);
  const [now] = limitsThen(
    { start: 0, end: 1_000 },
    { sId: '0x1' },
    { profile: installed, alarms: [], former: [] },
  );
  expect(now?.text).toMatch(/^warm: above 8, since /);
  // As the values of its sense are written.
  const sense = { sId: '0x1', unit: '°C', decimals: 1 };
  const [fine] = limitsThen({ start: 0, end: 1_000 }, sense, {
    profile: installed,
    alarms: [],
    former: [],
  });
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

test('a limit of several profiles is one field; a margin is no limit of the other direction', () => {
  const senses = new Map([[temperature.sId, temperature]]);
  const groupOf = (pId: string, limit: object) => {
    const limits = { '0x1': { ...noLimit, ...limit } };
    const purposes = [purposeOf({ ...noRules, limits }, [temperature])];
    const found = limitsIn(purposes, { isOwn: true }) ?? [];
    return { pId, devices: 1, example: pId, senses, purposes, limits: found };
  };
  // Leads back at 6.
  const one = groupOf('one', { above: 8, back: 2 });
  const other = groupOf('other', { above: 10, below: 2 });
  const fields = fieldsOf([one, other]);
  expect(fields.map(({ of }) => of.map(({ limit }) => [limit.which, limit.value]))).toEqual([
    [
      ['isGt', 8],
      ['isGt', 10],
    ],
    [['isLt', 6]],
    [['isLt', 2]],
  ]);
  expect(fields.map(commonOf)).toEqual([undefined, 6, 2]);
  const fahrenheit = new Map([[temperature.sId, { ...temperature, unit: '°F' }]]);
  expect(fieldsOf([other, { ...other, senses: fahrenheit }])).toHaveLength(4);
  const [above] = fields;
  const asked = limitsOfGroups([one, other], new Map([[above?.key ?? '', 10]]), 'critical');
  // The event that leads back opens no alarm.
  expect(asked).toMatchObject([
    { ifPId: 'one', changes: [{ thresholds: { isGt: 10 } }, { evId: 1, severity: 'critical' }] },
    { ifPId: 'other', changes: [{ severity: 'critical' }, { severity: 'critical' }] },
  ]);
  expect(asked[0]?.changes).toHaveLength(2);
  expect(limitsOfGroups([other], new Map(), 'warning')).toEqual([]);
});

test('an event that tells people opens an alarm, but not if it leads back', () => {
  const purpose = { puId: 1, initStId: 1, states: [] } as unknown as Purpose;
  const above = { sId: '0x1', orderId: 0, thresholds: { isGt: 8 } };
  const opens = (actions: object, when: object = { causes: [above] }) =>
    opensAlarm(
      {
        evId: 1,
        actions: { cloud: { sendPush: true }, ...actions },
        ...when,
      } as unknown as Parameters<typeof opensAlarm>[0],
      2,
      purpose,
    );
  expect(opens({})).toBe(true);
  expect(opens({ engine: { gotoStId: 1 } })).toBe(false);
  expect(opens({ engine: { gotoStId: 3 } })).toBe(true);
  expect(opens({ engine: { gotoStId: 1 }, alarm: true })).toBe(true);
  const any = { sId: '0x2', thresholds: { isAny: true } };
  expect(opens({}, { causes: [], anyOf: [[above], [above, any]] })).toBe(true);
  expect(opens({}, { causes: [], anyOf: [[above], [any]] })).toBe(false);
});
