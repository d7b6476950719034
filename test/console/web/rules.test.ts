import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  readCause,
  turned,
  writeCause,
  comparisons,
  subjects,
} from '../../../src/console/web/pages/rules/cause.ts';
import {
  addEvent,
  addState,
  beginHistory,
  edit,
  groupsOf,
  isOn,
  readRule,
  redo,
  remove,
  type Rule,
  undo,
  withAt,
  withGroups,
} from '../../../src/console/web/pages/rules/document.ts';
import { linesOf, listAlarms } from '../../../src/console/web/pages/rules/tried.ts';
import type { BacktestLine } from '../../../src/play/schema.ts';
import { Cause, Purpose } from '../../../src/contract/purpose.ts';

const folder = new URL('../../../examples/', import.meta.url);
const examples = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => [name, JSON.parse(readFileSync(new URL(name, folder), 'utf8'))] as const);

function ruleOf(value: unknown): Rule {
  const read = readRule(value);
  if ('wrongAt' in read) throw new Error(`no rule: ${read.wrongAt.join('/')}`);
  return read.rule;
}

const ms = fc.integer({ min: 60_000, max: 86_400_000 });
const number = fc.integer({ min: -1_000, max: 1_000 }).map((whole) => whole / 10);
const corner = fc.record({
  lat: fc.integer({ min: -80, max: 80 }),
  long: fc.integer({ min: -180, max: 180 }),
});
/** Causes with any of the members, those that no sentence can say among them. */
const cause = fc.record(
  {
    sId: fc.constantFrom('0x10', '0x20'),
    orderId: fc.integer({ min: 1, max: 9 }),
    senseLog: fc.boolean(),
    measurement: fc.record(
      { log: fc.boolean(), interval: fc.nat(1_000), count: fc.integer({ min: 0, max: 60 }) },
      { requiredKeys: [] },
    ),
    threshold: fc.oneof(
      fc.record({ noneForMs: ms, count: fc.constant(1) }, { requiredKeys: ['noneForMs'] }),
      fc.record({ noneForMs: ms, forMs: ms }, { requiredKeys: [] }),
      fc.record(
        {
          count: fc.integer({ min: 1, max: 60 }),
          negate: fc.boolean(),
          relative: fc.boolean(),
          decimalAcc: fc.integer({ min: 0, max: 5 }),
          forMs: ms,
          maxAgeMs: ms,
          over: fc.record({
            ms,
            stat: fc.constantFrom('avg', 'sum', 'delta', 'min', 'max', 'stddev'),
          }),
        },
        { requiredKeys: [] },
      ),
    ),
    thresholds: fc.oneof(
      fc.record({ isGt: number }),
      fc.record({ isGt: number, isLt: number }),
      fc.record({ isOneOf: fc.array(number, { maxLength: 4 }) }),
      fc.record({ isInsideGeo: fc.array(corner, { minLength: 3, maxLength: 5 }) }),
      fc.record(
        {
          isLt: number,
          isOneOf: fc.array(number, { maxLength: 4 }),
          isNotIn: fc.array(number, { maxLength: 4 }),
          isAny: fc.boolean(),
        },
        { requiredKeys: [] },
      ),
    ),
  },
  { requiredKeys: ['sId'] },
);

describe('a rule in the form', () => {
  test.each(examples)('%s can be said in sentences, and comes back as it was', (_, value) => {
    const rule = ruleOf(value);
    expect(rule).toEqual(value);
    for (const { events } of rule.states)
      for (const { causes } of events)
        for (const each of causes) {
          const sentence = readCause(each);
          expect(sentence).not.toBeNull();
          if (sentence) expect(writeCause(each, sentence)).toEqual(each);
        }
  });

  test('a cause comes back as it was, whatever it says', () => {
    let said = 0;
    fc.assert(
      fc.property(cause, (random) => {
        const sentence = readCause(random);
        if (!sentence) return;
        said += 1;
        expect(Cause.parse(writeCause(random, sentence))).toEqual(Cause.parse(random));
      }),
      { numRuns: 2_000 },
    );
    expect(said).toBeGreaterThan(100);
  });

  test('a sentence of any words comes back as it was written, and the service accepts it', () => {
    const words = fc.record({
      subject: fc.constantFrom(...subjects),
      comparison: fc.constantFrom(...comparisons),
      number,
    });
    fc.assert(
      fc.property(cause, fc.array(words, { minLength: 1, maxLength: 5 }), (random, choices) => {
        let sentence = readCause(random);
        if (!sentence) return;
        for (const { subject, comparison } of choices)
          sentence = turned(sentence, { subject, comparison });
        const written = writeCause(random, sentence);
        expect(readCause(written)).toEqual(sentence);
        // What belongs to the device or to the order of causes stays.
        expect(written['orderId']).toBe(random.orderId);
        expect(written['senseLog']).toBe(random.senseLog);
      }),
      { numRuns: 1_000 },
    );
  });

  test('a change keeps what it does not know', () => {
    const value = {
      puId: 4,
      'x-of': 'somebody',
      initStId: 1,
      states: [
        {
          stId: 1,
          later: true,
          events: [{ evId: 7, schedule: [1], causes: [], actions: { siren: 1 } }],
        },
      ],
    };
    const rule = ruleOf(value);
    const named = withAt(rule, ['states', 0, 'events', 0, 'name'], 'Too warm');
    expect(named).toEqual({
      ...value,
      states: [
        { ...value.states[0], events: [{ ...value.states[0]?.events[0], name: 'Too warm' }] },
      ],
    });
    expect(withAt(named, ['states', 0, 'events', 0, 'name'], undefined)).toEqual(value);
    expect(rule).toEqual(value);
  });

  test('what it cannot show is named', () => {
    expect(readRule([])).toEqual({ wrongAt: [] });
    expect(readRule({ states: [{ stId: 1, events: [{ evId: 'a' }] }] })).toEqual({
      wrongAt: ['states', 0, 'events', 0, 'evId'],
    });
  });
});

describe('changing a rule', () => {
  const empty = ruleOf({ puId: 1, initStId: 1 });

  test('states and events get free numbers, and what led to a removed state leads nowhere', () => {
    const first = addState(empty, 'Cold');
    const second = addState(first.rule, 'Warm');
    const moved = addEvent(second.rule, first.selected, {
      name: 'Warms',
      sId: '0x10',
      gotoStId: 2,
    });
    const { rule } = addEvent(moved.rule, second.selected, { name: 'Too warm', sId: '0x10' });
    expect(Purpose.parse(rule).states.map(({ stId, events }) => [stId, events.length])).toEqual([
      [1, 1],
      [2, 1],
    ]);
    const left = remove(rule, second.selected);
    expect(Purpose.parse(left).states.map(({ stId }) => stId)).toEqual([1]);
    expect(left.states[0]?.events[0]?.['actions']).toEqual({});
    // The first state goes: a device begins in the other one.
    expect(Purpose.parse(remove(rule, first.selected)).initStId).toBe(2);
  });

  test('undo and redo go through every step; typing in one field is one', () => {
    const typed = ['T', 'To', 'Too'].map((name) => withAt(empty, ['name'], name));
    const named = typed.reduce((history, rule) => edit(history, rule, 'name'), beginHistory(empty));
    const added = edit(named, addState(named.now, 'Cold').rule);
    expect(added.past).toHaveLength(2);
    const back = undo(added);
    expect(back.now['name']).toBe('Too');
    expect(undo(back).now).toBe(empty);
    expect(undo(undo(back)).now).toBe(empty);
    expect(redo(redo(undo(back))).now).toBe(added.now);
    expect(edit(back, empty).future).toEqual([]);
  });
});

test('what was recorded is about a rule if the device had it then, and no other with its number', () => {
  const rule = ruleOf({ puId: 3, name: 'Freezer', states: [] });
  const span = (fromTs: number, untilTs: number | null, ...purposes: object[]) =>
    ({ fromTs, untilTs, purposes }) as Parameters<typeof isOn>[0][number];
  const own = { puId: 3, name: 'Freezer' };
  const other = { puId: 3, name: 'Door' };
  const during = { start: 100, end: 200 };
  expect(isOn([], rule, during)).toBe(false);
  expect(isOn([span(150, null, { puId: 4, name: 'Freezer' }, own)], rule, during)).toBe(true);
  expect(isOn([span(150, null, { puId: 4, name: 'Freezer' })], rule, during)).toBe(false);
  expect(isOn([span(150, null, own), span(50, 150, other)], rule, during)).toBe(false);
  expect(isOn([span(150, null, own), span(50, 99, other)], rule, during)).toBe(true);
  expect(isOn([span(201, null, own)], rule, during)).toBe(false);
  expect(isOn([span(150, null, { puId: 3 })], rule, during)).toBe(false);
  expect(isOn([span(150, null, { puId: 3 })], ruleOf({ puId: 3 }), during)).toBe(true);
});

describe('the alarms of a backtest', () => {
  const at = { puId: 1, stId: 1, evId: 1 };
  const alarm = (deviceAuthUuid: string, sinceTs: number, closedTs: number | null) =>
    ({
      kind: 'alarm',
      deviceAuthUuid,
      ...at,
      sinceTs,
      lastFiringTs: sinceTs,
      firings: 1,
      beganTs: sinceTs - 10,
      overTs: closedTs,
      closedTs,
      closedBy: null,
    }) satisfies BacktestLine;
  const differs = (
    deviceAuthUuid: string,
    ts: number,
    how: { only?: 'candidate' | 'against'; earlierMs?: number; puId?: number },
  ) =>
    ({ kind: 'difference', of: 'alarm', deviceAuthUuid, ...at, ts, ...how }) satisfies BacktestLine;
  const lines = [
    alarm('a', 1_000, 2_000),
    alarm('a', 5_000, null),
    alarm('b', 3_000, 4_000),
    alarm('c', 3_500, 4_000),
    differs('a', 5_000, { only: 'candidate' }),
    differs('a', 2_500, { only: 'against' }),
    // Another rule of the device.
    differs('a', 2_600, { only: 'against', puId: 2 }),
    differs('b', 3_000, { earlierMs: 720_000 }),
    // It did not have the rule then.
    differs('c', 3_500, { only: 'candidate' }),
  ];

  test('are those of both sides, each with what became of it', () => {
    const alarms = listAlarms(lines, { puId: 1, isCompared: (uuid) => uuid !== 'c' });
    expect(
      alarms.map(({ uuid, from, until, fate, earlierMs }) => [uuid, from, until, fate, earlierMs]),
    ).toEqual([
      ['a', 1_000, 2_000, 'same', 0],
      ['a', 2_500, null, 'against', 0],
      ['b', 3_000, 4_000, 'moved', 720_000],
      ['c', 3_500, 4_000, null, 0],
      ['a', 5_000, null, 'candidate', 0],
    ]);
    expect(linesOf(lines, 'alarm')).toHaveLength(4);
  });
});

test('conditions are groups of which one is enough; a single one is written as causes', () => {
  const [one, other] = [{ sId: '0x10' }, { sId: '0x12' }];
  const event = { evId: 1, name: 'Warm', causes: [one] };
  expect(groupsOf(event)).toEqual([[one]]);
  const either = withGroups(event, [[one], [other, one], []]);
  expect(either).toEqual({ evId: 1, name: 'Warm', causes: [], anyOf: [[one], [other, one]] });
  expect(groupsOf(either)).toEqual([[one], [other, one]]);
  expect(withGroups(either, [[], [other]])).toEqual({ evId: 1, name: 'Warm', causes: [other] });
  expect(withGroups(either, [[], []])).toEqual({ evId: 1, name: 'Warm', causes: [] });
});
