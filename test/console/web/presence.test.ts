import { expect, test } from 'vitest';
import {
  rhythmOf,
  type Seen,
  type Standing,
  standingOf,
} from '../../../src/console/web/parts/presence.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const nowTs = Date.UTC(2026, 10, 27);
const ago = (ms: number) => nowTs - ms;

const mqtt: Seen = {
  connected: false,
  presence: 'offline',
  transport: 'mqtt',
  lastSeenTs: ago(3 * minuteMs),
};
const there: Seen = { ...mqtt, connected: true, presence: 'online' };
const http: Seen = { ...mqtt, presence: 'intermittent', transport: 'http' };
/** Its newest value, and how long after the one before. */
const sent = (agoMs: number, everyMs?: number) => ({ valueTs: ago(agoMs), everyMs });

test.each<[string, Seen, Standing]>([
  ['added only now', { ...mqtt, lastSeenTs: null }, 'never'],
  ['added only now, over HTTP', { ...http, lastSeenTs: null }, 'never'],
  ['refused before it was ever heard', { ...mqtt, lastSeenTs: null, refusedTs: ago(1) }, 'refused'],
  ['refused since it left', { ...mqtt, refusedTs: ago(minuteMs), ...sent(1, hourMs) }, 'refused'],
  [
    'refused with an old token while the new one is connected',
    { ...there, refusedTs: ago(1) },
    'online',
  ],
  ['connected, with values', { ...there, ...sent(minuteMs, minuteMs) }, 'online'],
  ['connected, before its values are known', there, 'online'],
  ['connected, without any value', { ...there, valueTs: null }, 'no-value'],
  [
    'connected, and quiet for 2 hours',
    { ...there, ...sent(2 * hourMs, minuteMs) },
    'sends-nothing',
  ],
  [
    'connected, and it measures every 2 hours',
    { ...there, ...sent(2 * hourMs, 2 * hourMs) },
    'online',
  ],
  ['every 15 minutes, 3 minutes ago', { ...mqtt, ...sent(3 * minuteMs, 15 * minuteMs) }, 'asleep'],
  [
    'every 15 minutes, an hour ago',
    { ...mqtt, lastSeenTs: ago(hourMs), ...sent(hourMs, 15 * minuteMs) },
    'offline',
  ],
  [
    'two values in one message, half a minute ago',
    { ...mqtt, lastSeenTs: ago(30_000), ...sent(30_000, 10) },
    'asleep',
  ],
  ['two values in one message, 3 minutes ago', { ...mqtt, ...sent(3 * minuteMs, 10) }, 'offline'],
  ['the same over HTTP', { ...http, ...sent(3 * minuteMs, 10) }, 'to-send'],
  ['every 10 seconds, 3 minutes ago', { ...mqtt, ...sent(3 * minuteMs, 10_000) }, 'offline'],
  ['one value only: there is no rhythm to tell by', { ...mqtt, ...sent(3 * minuteMs) }, 'offline'],
  ['no value yet', { ...mqtt, valueTs: null }, 'offline'],
  [
    'every month: after a day more it is overdue',
    { ...mqtt, lastSeenTs: ago(32 * 24 * hourMs), ...sent(32 * 24 * hourMs, 30 * 24 * hourMs) },
    'offline',
  ],
  ['its clock is an hour behind', { ...mqtt, ...sent(hourMs, 15 * minuteMs) }, 'asleep'],
  ['over HTTP, in time', { ...http, ...sent(3 * minuteMs, 15 * minuteMs) }, 'to-send'],
  ['over HTTP, once', { ...http, ...sent(3 * minuteMs) }, 'to-send'],
  [
    'over HTTP, overdue',
    { ...http, lastSeenTs: ago(hourMs), ...sent(hourMs, 15 * minuteMs) },
    'silent',
  ],
])('a device stands as its data say: %s', (_, seen, standing) => {
  expect(standingOf(seen, nowTs)).toBe(standing);
});

test('its rhythm is that of the sense that measured last', () => {
  expect(rhythmOf(undefined)).toEqual({});
  expect(rhythmOf([])).toEqual({ valueTs: null });
  expect(rhythmOf([{ ts: 5 }])).toEqual({ valueTs: 5, everyMs: undefined });
  const values = [
    { ts: 50, beforeTs: 10 },
    { ts: 90, beforeTs: 60 },
  ];
  expect(rhythmOf(values)).toEqual({ valueTs: 90, everyMs: 30 });
});
