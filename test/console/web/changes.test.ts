import { beforeAll, expect, test, vi } from 'vitest';
import { sayChanges } from '../../../src/console/web/pages/device/changes.ts';
import { speak } from '../../../src/console/web/text/t.ts';
import type { Sense } from '../../../src/contract/configuration.ts';
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

const senses = new Map<string, Sense>([
  ['0x10', { sId: '0x10', name: 'Temperature', unit: '°C', decimals: 1 }],
  ['0x12', { sId: '0x12', name: 'Door' }],
]);

const warmer = { sId: '0x10', threshold: { forMs: 600_000 }, thresholds: { isGt: 8 } };
const isOpen = { sId: '0x12', thresholds: { isOneOf: [1] } };
const warm = {
  evId: 1,
  name: 'Too warm',
  eventLog: true,
  causes: [warmer],
  actions: { alarm: true },
};
const open = {
  evId: 2,
  name: 'Open',
  eventLog: true,
  causes: [isOpen],
  actions: { alarm: true, cloud: { sendPush: true }, repeatMs: 3_600_000 },
};
const watched = { stId: 1, name: 'Watched', events: [warm, open] };
const away = { stId: 2, name: 'Away', events: [] };
const rule = { puId: 1, name: 'Freezer', initStId: 1, states: [watched, away] };
const withEvents = (...events: object[]) => ({ ...rule, states: [{ ...watched, events }, away] });
const withCauses = (...causes: object[]) => withEvents({ ...warm, causes }, open);

const before = Purpose.parse(rule);
const reversed = (members: object) => Object.fromEntries(Object.entries(members).toReversed());

test.each<[string, object, string[]]>([
  ['nothing', rule, []],
  ['the order of members alone', reversed(withEvents(reversed(warm), open)), []],
  [
    'a limit and a delay',
    withCauses({ ...warmer, threshold: { forMs: 300_000 }, thresholds: { isGt: 6 } }),
    ['Too warm: limit of Temperature 8 °C → 6 °C', 'Too warm: delay of Temperature 10 min → 5 min'],
  ],
  [
    'groups of conditions',
    withEvents({ ...warm, causes: [], anyOf: [[warmer], [isOpen]] }, open),
    [
      'Too warm: Temperature above 8 °C, for 10 min → Temperature above 8 °C, for 10 min – or: Door one of 1',
    ],
  ],
  [
    'how it is compared',
    withCauses({ ...warmer, thresholds: { isLt: 2 } }),
    ['Too warm: Temperature above 8 °C, for 10 min → Temperature below 2 °C, for 10 min'],
  ],
  [
    'another condition',
    withCauses(warmer, isOpen),
    [
      'Too warm: Temperature above 8 °C, for 10 min → Temperature above 8 °C, for 10 min; and Door one of 1',
    ],
  ],
  [
    'who is told, and how bad it is',
    withEvents(
      {
        ...warm,
        actions: {
          alarm: true,
          severity: 'critical',
          sms: { text: 'warm', phoneNumber: ['+4917112345'] },
        },
      },
      { ...open, actions: { alarm: true } },
    ),
    [
      'Too warm: Opens an alarm (Warning). → Opens an alarm (Critical).',
      'Too warm: new: Sends an SMS to +4917112345.',
      'Open: no longer: Notifies people.',
      'Open: no longer: Notifies again every 1 hr.',
    ],
  ],
  [
    'events and states that come, go and are renamed',
    {
      ...rule,
      name: 'Cold room',
      states: [
        {
          ...watched,
          events: [
            { ...warm, name: 'Warm' },
            { ...open, evId: 3 },
          ],
        },
        { stId: 3, name: 'Gone', events: [] },
      ],
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
    { ...rule, initStId: 2, states: [{ ...watched, isGlobal: true }, away] },
    ['It begins in the state “Away”.', 'The events of “Watched” count in every state.'],
  ],
  [
    'what no sentence says',
    withCauses({ ...warmer, threshold: { forMs: 600_000, decimalAcc: 1 } }),
    ['Too warm: Something that the JSON alone says.'],
  ],
])('the difference is said in words: %s', (_, after, expected) => {
  const said = sayChanges(before, Purpose.parse(after), senses);
  // With no-break spaces, as everywhere.
  expect(said.map((each) => each.replaceAll(/[\u00a0\u202f]/g, ' '))).toEqual(expected);
});

test('the text of an SMS is said, also beside a limit', () => {
  const tells = (text: string, isGt: number) =>
    Purpose.parse(
      withEvents({
        ...warm,
        causes: [{ ...warmer, thresholds: { isGt } }],
        actions: { alarm: true, sms: { text, phoneNumber: ['+4917112345'] } },
      }),
    );
  const said = sayChanges(tells('warm', 8), tells('call Anna', 6), senses);
  expect(said.map((each) => each.replaceAll(/[\u00a0\u202f]/g, ' '))).toEqual([
    'Too warm: limit of Temperature 8 °C → 6 °C',
    'Too warm: text of the SMS “warm” → “call Anna”',
  ]);
});
