import { expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import { compileProfile } from '../../src/engine/compile.ts';
import { meaningOf } from '../../src/ingest/rules/firings.ts';
import { Measurements } from '../../src/play/measurements.ts';
import { Player } from '../../src/play/player.ts';

const rules = { ringMaxAgeMs: 900_000, reportedForMs: 3_600_000 };
const device = { deviceId: 1, uuid: 'u', accountId: 1 };

const profile = compileProfile('p', [
  Purpose.parse({
    puId: 1,
    initStId: 1,
    states: [
      {
        stId: 1,
        events: [
          {
            evId: 1,
            eventLog: true,
            actions: { alarm: true },
            anyOf: [
              [{ sId: '0x1', thresholds: { isGt: 8 } }],
              [
                { sId: '0x1', thresholds: { isGt: 5 } },
                { sId: '0x2', thresholds: { isOneOf: [1] } },
              ],
            ],
          },
        ],
      },
    ],
  }),
]);

/** Plays values of 0x1 and 0x2, one a second. */
function play(values: [sense: 0 | 1, val: number][]): Player {
  const player = new Player({ device, limits: rules, rules });
  player.begin(profile, 0);
  const all = new Measurements();
  all.clear(['0x1', '0x2']);
  for (const [n, [sense, val]] of values.entries())
    all.add(sense, (n + 1) * 1_000_000, val, NaN, (n + 1) * 1_000, NaN);
  all.sort();
  player.measure(all, 0, all.count);
  return player;
}

test('an alarm says what the group required that opened it, and with what', () => {
  const [alarm] = play([
    [1, 1],
    [0, 6],
  ]).alarms;
  expect(alarm).toMatchObject({
    sIds: ['0x1', '0x2'],
    conditions: [
      { sId: '0x1', thresholds: { isGt: 5 } },
      { sId: '0x2', thresholds: { isOneOf: [1] } },
    ],
    firedWith: [
      { sId: '0x1', val: 6 },
      { sId: '0x2', val: 1 },
    ],
    event: { why: [{ group: 1 }, { group: 1 }] },
  });
  const [other] = play([[0, 9]]).alarms;
  expect(other).toMatchObject({ sIds: ['0x1'], conditions: [{ sId: '0x1' }] });
  expect(other?.conditions).toHaveLength(1);
});

test('its alarm stays open while one of the groups that held still agrees', () => {
  const spans = play([
    [0, 9],
    [1, 1],
    [0, 9],
    [0, 7],
    [0, 6],
    [1, 0],
    [0, 9],
  ]).alarms.map(({ sinceTs, closedTs }) => [sinceTs, closedTs]);
  // The second 9 fires with both groups; 7 ends the first one only.
  expect(spans).toEqual([
    [1_000, 6_000],
    [7_000, null],
  ]);
});

test('what the event is called has the conditions of all groups, with their numbers', () => {
  const current = { profile, engine: 'service' as const };
  const of = { pId: 'p', puId: 1, stId: 1, evId: 1, ts: 0 };
  expect(meaningOf({ current }, of)?.conditions).toMatchObject([
    { sId: '0x1', group: 0 },
    { sId: '0x1', group: 1 },
    { sId: '0x2', group: 1 },
  ]);
});
