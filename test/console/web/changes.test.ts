import { beforeAll, expect, test, vi } from 'vitest';
import { sayChanges, sayProfileChanges } from '../../../src/console/web/pages/device/changes.ts';
import { speak } from '../../../src/console/web/text/t.ts';
import { Purpose } from '../../../src/contract/purpose.ts';

// What the page's modules look at when they are loaded.
vi.hoisted(() =>
  Object.assign(globalThis, {
    location: { pathname: '/console/', search: '' },
    addEventListener: () => {},
    document: { documentElement: {}, addEventListener: () => {} },
  }),
);
beforeAll(() => speak('en'));

const senses = new Map([
  ['0x10', { sId: '0x10', name: 'Temperature', unit: '°C', decimals: 1 }],
  ['0x12', { sId: '0x12', name: 'Door' }],
]);

type Change = (purpose: {
  name: string;
  initStId: number;
  states: {
    stId: number;
    name: string;
    isGlobal?: boolean;
    events: {
      evId: number;
      name: string;
      eventLog: boolean;
      causes: { sId: string; threshold?: object; thresholds: object }[];
      actions: Record<string, unknown>;
    }[];
  }[];
}) => void;

const first = () => ({
  puId: 1,
  name: 'Freezer',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'Watched',
      events: [
        {
          evId: 1,
          name: 'Too warm',
          eventLog: true,
          causes: [{ sId: '0x10', threshold: { forMs: 600_000 }, thresholds: { isGt: 8 } }],
          actions: { alarm: true },
        },
        {
          evId: 2,
          name: 'Open',
          eventLog: true,
          causes: [{ sId: '0x12', thresholds: { isOneOf: [1] } }],
          actions: { alarm: true, cloud: { sendPush: true }, repeatMs: 3_600_000 },
        },
      ],
    },
    { stId: 2, name: 'Away', events: [] },
  ],
});

const before = Purpose.parse(first());
/** With no-break spaces as others. */
const said = (change: Change) => {
  const after = first();
  change(after as Parameters<Change>[0]);
  return sayChanges(before, Purpose.parse(after), senses as never).map((each) =>
    each.replaceAll(/[\u00a0\u202f]/g, ' '),
  );
};

test.each<[string, Change, string[]]>([
  ['nothing', () => undefined, []],
  [
    'the order of members alone',
    ({ states }) => {
      const [event] = states[0]!.events;
      states[0]!.events[0] = Object.fromEntries(
        Object.entries(event!).toReversed(),
      ) as typeof event & object;
    },
    [],
  ],
  [
    'a limit and a delay',
    ({ states }) => {
      Object.assign(states[0]!.events[0]!.causes[0]!, {
        threshold: { forMs: 300_000 },
        thresholds: { isGt: 6 },
      });
    },
    ['Too warm: limit of Temperature 8 °C → 6 °C', 'Too warm: delay of Temperature 10 min → 5 min'],
  ],
  [
    'how it is compared',
    ({ states }) => {
      states[0]!.events[0]!.causes[0]!.thresholds = { isLt: 2 };
    },
    ['Too warm: Temperature above 8 °C, for 10 min → Temperature below 2 °C, for 10 min'],
  ],
  [
    'another condition',
    ({ states }) => {
      states[0]!.events[0]!.causes.push({ sId: '0x12', thresholds: { isOneOf: [1] } });
    },
    [
      'Too warm: Temperature above 8 °C, for 10 min → Temperature above 8 °C, for 10 min; and Door one of 1',
    ],
  ],
  [
    'who is told, and how bad it is',
    ({ states }) => {
      states[0]!.events[0]!.actions = {
        alarm: true,
        severity: 'critical',
        sms: { text: 'warm', phoneNumber: ['+4917112345'] },
      };
      states[0]!.events[1]!.actions = { alarm: true };
    },
    [
      'Too warm: Opens an alarm (Warning). → Opens an alarm (Critical).',
      'Too warm: new: Sends an SMS to +4917112345.',
      'Open: no longer: Notifies people.',
      'Open: no longer: Notifies again every 1 hr.',
    ],
  ],
  [
    'events and states that come, go and are renamed',
    (purpose) => {
      purpose.name = 'Cold room';
      purpose.states[0]!.events[0]!.name = 'Warm';
      purpose.states[0]!.events[1]!.evId = 3;
      purpose.states.splice(1, 1, { stId: 3, name: 'Gone', events: [] });
    },
    [
      'The rule “Freezer” is called “Cold room”.',
      'The event “Too warm” is called “Warm”.',
      'No longer: the event “Open”.',
      'New event “Open”: Door one of 1. Opens an alarm (Warning). Notifies people. Notifies again every 1 hr. Is recorded.',
      'No longer: the state “Away” and its events.',
      'New state “Gone”.',
    ],
  ],
  [
    'where it begins, and what counts everywhere',
    (purpose) => {
      purpose.initStId = 2;
      purpose.states[0]!.isGlobal = true;
    },
    ['It begins in the state “Away”.', 'The events of “Watched” count in every state.'],
  ],
  [
    'what no sentence says',
    ({ states }) => {
      Object.assign(states[0]!.events[0]!.causes[0]!, {
        threshold: { forMs: 600_000, decimalAcc: 1 },
      });
    },
    ['Too warm: Something that the JSON alone says.'],
  ],
])('the difference is said in words: %s', (_, change, expected) => {
  expect(said(change)).toEqual(expected);
});

test('of a profile of several purposes, each says whose difference it is', () => {
  const other = { ...before, puId: 2, name: 'Door' };
  const after = Purpose.parse({ ...first(), initStId: 2 });
  expect(
    sayProfileChanges([before, other], [after, { ...other, puId: 3 }], senses as never),
  ).toEqual([
    'Freezer: It begins in the state “Away”.',
    'New rule “Door”.',
    'No longer: the rule “Door”.',
  ]);
});
