import { describe, expect, test } from 'vitest';
import type { Evidence, Message, Told, Watched } from './evidence.ts';
import { judgeAlarms as judge, noWrongs } from './judge-alarms.ts';
import { rules, type Role } from './roles.ts';

const startTs = Date.UTC(2026, 0, 15, 12);
const answerMs = 20;

/** A device that sent this many messages, each answered at once, with what should follow from them. */
function deviceOf(role: Role, count: number, firstAlarmId: number): Watched {
  const { thresholdMs, pauseMs } = rules[role];
  let ts = startTs + 100;
  const messages = Array.from({ length: count }, (_, seq) => {
    const message = { ts, ackedTs: ts + answerMs };
    ts += answerMs + pauseMs(seq);
    return message;
  });
  const fires = (seq: number) =>
    role === 'falling-silent' ? seq < count - 1 : role !== 'lively' && seq % 2 === 1;
  const firings = messages
    .filter((_, seq) => fires(seq))
    .map((message) => message.ts + thresholdMs + (role === 'falling-silent' ? 5 : 0));
  const alarms = firings.map((sinceTs, n) => ({
    alarmId: firstAlarmId + n,
    sinceTs,
    closedBy: 'cleared' as const,
  }));
  return { uuid: role, role, installedTs: startTs, messages, firings, alarms };
}

function evidence(): Evidence & Record<'swinging' | 'lasting' | 'silent' | 'lively', Watched> {
  const swinging = deviceOf('swinging', 20, 100);
  const lasting = deviceOf('lasting', 21, 200);
  const silent = deviceOf('falling-silent', 10, 300);
  const lively = deviceOf('lively', 60, 400);
  const devices = [swinging, lasting, silent, lively];
  const told = devices.flatMap(({ alarms }) =>
    alarms.flatMap(({ alarmId }): Told[] =>
      ['alarm.opened', 'alarm.closed'].map((type) => ({
        type,
        alarmId,
        webhookId: `${type} ${alarmId}`,
      })),
    ),
  );
  const nowTs = Math.max(...devices.map(({ messages }) => messages.at(-1)?.ackedTs ?? 0));
  return {
    nowTs,
    devices,
    told,
    gaps: [],
    connectors: 1,
    waiting: 0,
    swinging,
    lasting,
    silent,
    lively,
  };
}

/** The number of alarms does not matter. */
function judgeAlarms(given: Evidence) {
  const { alarms: _, ...wrong } = judge(given);
  return wrong;
}
const { alarms: _, ...nothing } = noWrongs;

const first = <T>([one]: T[]): T => one as T;

test('correct evidence is judged correct', () => {
  const all = evidence();
  expect(all.told.length).toBeGreaterThan(50);
  expect(judgeAlarms(all)).toEqual(nothing);
});

describe('it detects that', () => {
  test.each<[string, (all: ReturnType<typeof evidence>) => void, Partial<typeof nothing>]>([
    ['an alarm is missing', ({ swinging }) => swinging.alarms.pop(), { alarmsUntold: 1 }],
    ['nobody was notified of an alarm', ({ told }) => told.shift(), { alarmsUntold: 1 }],
    [
      'nobody was notified of the end of an alarm',
      ({ told }) => told.splice(1, 1),
      { alarmsUntold: 1 },
    ],
    [
      'an alarm opened twice',
      ({ swinging }) => swinging.alarms.push({ ...first(swinging.alarms), alarmId: 999 }),
      { alarmsInvented: 1, alarmsUntold: 1 },
    ],
    [
      'a message was sent under two numbers',
      ({ told }) => told.push({ ...first(told), webhookId: 'another' }),
      { toldTwice: 1 },
    ],
    ['a message was delivered again', ({ told }) => told.push(first(told)), { toldAgain: 1 }],
    [
      'a firing of a value is missing',
      ({ swinging }) => void swinging.firings.shift(),
      { firingsLost: 1, alarmsInvented: 1 },
    ],
    [
      'a tick of a lasting value is missing',
      ({ lasting }) => void (lasting.firings.shift(), lasting.alarms.shift()),
      { firingsLost: 1 },
    ],
    [
      'a tick of a silence is missing',
      ({ silent }) => void (silent.firings.splice(3, 1), silent.alarms.splice(3, 1)),
      { firingsLost: 1 },
    ],
    [
      'a tick came twice',
      ({ silent }) => silent.firings.push(first(silent.firings) + 300),
      { firingsInvented: 1, alarmsUntold: 1 },
    ],
    [
      'a tick has another time',
      ({ lasting }) => void (lasting.firings[0] = first(lasting.firings) + 1),
      { firingsInvented: 1, firingsLost: 1, alarmsInvented: 1, alarmsUntold: 1 },
    ],
    [
      'a device that is never silent was reported silent',
      ({ lively }) => lively.firings.push(first(lively.messages).ts + 15_000),
      { firingsInvented: 1, alarmsUntold: 1 },
    ],
  ])('%s', (_what, change, expected) => {
    const all = evidence();
    change(all);
    expect(judgeAlarms(all)).toEqual({ ...nothing, ...expected });
  });

  test('the service was away, and took that for silence', () => {
    const { lively, nowTs } = evidence();
    const awayMs = 25_000;
    const [before, after] = [lively.messages[29], lively.messages[30]] as [Message, Message];
    const messages = lively.messages.map(({ ts, ackedTs }, seq) => ({
      ts: ts + (seq > 30 ? awayMs : 0),
      ackedTs: (ackedTs ?? 0) + (seq >= 30 ? awayMs : 0),
    }));
    const all: Evidence = {
      nowTs: nowTs + awayMs,
      devices: [{ ...lively, messages }],
      told: [],
      gaps: [],
      connectors: 1,
      waiting: 0,
    };
    // Known to have been away: the time does not count.
    const known = {
      ...all,
      gaps: [{ connectorId: 1, fromTs: before.ts + 10, toTs: after.ts + awayMs }],
    };
    expect(judgeAlarms(known)).toEqual(nothing);
    const firedTs = before.ts + rules.lively.thresholdMs;
    lively.firings.push(firedTs);
    lively.alarms.push({ alarmId: 999, sinceTs: firedTs, closedBy: null });
    all.told.push({ type: 'alarm.opened', alarmId: 999, webhookId: '999' });
    expect(judgeAlarms(known)).toEqual({ ...nothing, firingsInvented: 1 });
    // It was silent this long while the service listened, so an alarm is allowed.
    expect(judgeAlarms(all)).toEqual(nothing);
  });
});

test('a firing that may belong to either of two silences belongs to the required one', () => {
  const installedTs = startTs;
  const messages = [403, 5_315, 9_500].map((ms) => ({
    ts: startTs + ms,
    ackedTs: startTs + ms + 1_050,
  }));
  const firings = [2_420, 7_315].map((ms) => startTs + ms);
  const alarms = firings.map((sinceTs, n) => ({ alarmId: n, sinceTs, closedBy: null }));
  const told = alarms.map(({ alarmId }) => ({
    type: 'alarm.opened',
    alarmId,
    webhookId: `${alarmId}`,
  }));
  const device: Watched = {
    uuid: 'a',
    role: 'falling-silent',
    installedTs,
    messages,
    firings,
    alarms,
  };
  const all = {
    nowTs: startTs + 10_600,
    devices: [device],
    told,
    gaps: [],
    connectors: 1,
    waiting: 0,
  };
  expect(judgeAlarms(all)).toEqual(nothing);
});

test('a device may be silent while one connector of several does not listen, but not while none does', () => {
  const { silent } = evidence();
  const [message, next] = [silent.messages[3], silent.messages[4]] as [Message, Message];
  const around = { fromTs: message.ts - 10_000, toTs: (next.ackedTs ?? 0) + 10_000 };
  const all = (...connectorIds: number[]): Evidence => ({
    ...evidence(),
    connectors: 2,
    gaps: connectorIds.map((connectorId) => ({ connectorId, ...around })),
  });
  expect(judgeAlarms(all(1))).toEqual(nothing);
  expect(judgeAlarms(all(1, 2)).firingsInvented).toBeGreaterThan(0);
});

test('what the service cannot know yet is neither required nor wrong', () => {
  const all = evidence();
  for (const device of all.devices) {
    const last = device.messages.at(-1);
    if (last) last.ackedTs = null;
  }
  expect(judgeAlarms(all)).toEqual(nothing);
  all.swinging.alarms.pop();
  const lastTs = all.swinging.firings.pop();
  all.told = all.told.filter(({ alarmId }) => alarmId !== 109);
  expect(lastTs).toBe(all.swinging.messages.at(-1)?.ts);
  expect(judgeAlarms(all)).toEqual(nothing);
});
