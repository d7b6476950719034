import { describe, expect, test } from 'vitest';
import { describeEvaluation, Description, explain } from '../../src/engine/explain.ts';
import { describedCause, type CauseExplanation } from './described-cause.ts';
import { number, profileOf, purposeWith, run } from './samples.ts';

type Context = Parameters<typeof describeEvaluation>[2];
type AlarmStanding = NonNullable<ReturnType<NonNullable<Context['alarms']>['get']>>;

const minute = 60_000;
const now = Date.UTC(2026, 10, 23, 12);
const seen = { val: 1, ts: now };

const tenMinutes = { forMs: 10 * minute, sinceTs: now - 3 * minute - 50_000, missing: 0 };
const silence = { noneForMs: 15 * minute, sinceTs: now - 12 * minute - 30_000 };
const hour = { ms: 60 * minute, stat: 'delta' as const };

describe('a cause in words:', () => {
  test.each<[string, Partial<CauseExplanation>]>([
    ['no measurement yet', {}],
    ['waits for the next measurement', { seen }],
    ['does not agree', { seen, of: 1 }],
    ['holds', { seen, of: 1, matched: 1, missing: 0, holds: true }],
    [
      '1 of 3 measurements agree, 2 are missing',
      { seen, of: 5, matched: 1, needed: 3, missing: 2 },
    ],
    ['2 of 3 measurements agree, 1 is missing', { seen, of: 2, matched: 2, needed: 3 }],
    [
      '3 of the last 5 agree, holds',
      { seen, of: 5, matched: 3, needed: 3, missing: 0, holds: true },
    ],
  ])('%s', (text, more) => {
    expect(describedCause(more, now)).toBe(text);
  });

  test.each<[string, Partial<CauseExplanation>]>([
    ['no measurement yet', { forMs: 10 * minute }],
    [
      'agrees for 3 of 10 minutes, holds in 6 min 12 s',
      { ...tenMinutes, dueTs: now + 6 * minute + 12_000 },
    ],
    ['agrees for 3 of 10 minutes, 2 are missing', { ...tenMinutes, missing: 2 }],
    [
      'agrees for 10 of 10 minutes, holds any moment now',
      { ...tenMinutes, sinceTs: now - 11 * minute, dueTs: now - 5 },
    ],
    ['agreed for 10 min, holds', { ...tenMinutes, holds: true }],
  ])('%s (forMs)', (text, more) => {
    expect(describedCause(more, now)).toBe(text);
  });

  test.each<[string, Partial<CauseExplanation>]>([
    [
      'silent for 12 of 15 minutes, holds in 2 min 30 s',
      { ...silence, dueTs: now + 2 * minute + 30_000 },
    ],
    // The service was not listening meanwhile: only the remaining time counts.
    ['silent for 5 of 15 minutes, holds in 10 min', { ...silence, dueTs: now + 10 * minute }],
    ['silent for 20 min, holds', { ...silence, sinceTs: now - 20 * minute, holds: true }],
    ['waits for 15 min of silence', { noneForMs: 15 * minute }],
  ])('%s (noneForMs)', (text, more) => {
    expect(describedCause(more, now)).toBe(text);
  });

  test.each<[string, Partial<CauseExplanation>]>([
    [
      'change over 1 h is compared after half that time: 20 of 30 minutes',
      { over: hour, collectedMs: 20 * minute, seen },
    ],
    ...(
      [
        ['minimum', 'min'],
        ['maximum', 'max'],
        ['standard deviation', 'stddev'],
      ] as const
    ).map(([noun, stat]): [string, Partial<CauseExplanation>] => [
      `${noun} over 1 h 3: does not agree`,
      { over: { ...hour, stat }, statistic: 3, seen, of: 1 },
    ]),
    ['change over 1 h -3.2: does not agree', { over: hour, statistic: -3.2, seen, of: 1 }],
    [
      'average over 1 h 9.5: agrees for 3 of 10 minutes, holds in 1 min',
      {
        ...tenMinutes,
        over: { ...hour, stat: 'avg' },
        statistic: 9.5,
        seen,
        dueTs: now + minute,
      },
    ],
  ])('%s (over)', (text, more) => {
    expect(describedCause(more, now)).toBe(text);
  });
});

const high = { sId: '0x1', thresholds: { isGt: 5 } };
const push = { cloud: { sendPush: true } };

/** The description of a profile's only event after these values. */
function describedOf(
  event: object,
  values: number[],
  standing?: AlarmStanding,
  late?: { count: number; newestTs: number },
) {
  const profile = profileOf(purposeWith({ evId: 1, eventLog: true, causes: [high], ...event }));
  const { runtime, seen: last } = run(
    profile,
    values.map((val, index) => number(val, now - 10 + index)),
  );
  const { mutedUntilTs, ...own } = standing ?? {};
  const around = {
    nowTs: now,
    alarms: new Map(Object.keys(own).length > 0 ? [['1/1/1', own]] : []),
    mutedUntilTs,
    late: new Map(late ? [['0x1', late]] : []),
  };
  const described = describeEvaluation(profile, explain(profile, runtime, last), around);
  expect(Description.parse(described)).toEqual(described);
  return described.events[0];
}

const until = now + 90 * minute;

describe('an event in words:', () => {
  test.each<[string, object, number[], AlarmStanding?]>([
    ['never fires: it has no causes', { causes: [] }, []],
    ['fires when its cause holds', {}, [3]],
    ['fires when all causes hold, 1 of 2 do', { causes: [high, { ...high, sId: '0x2' }] }, [9]],
    ['fires when its cause holds; people are notified then', { actions: push }, [3]],
    [
      'fires when its cause holds; its alarm is open, and people were notified',
      { actions: push },
      [9],
    ],
    [
      'fires when its cause holds; would notify people, but it is snoozed until 2026-11-23 13:30:00 UTC',
      { actions: push },
      [3],
      { snoozedUntilTs: until },
    ],
    [
      'fires when its cause holds; would notify people, but the device is muted until 2026-11-23 13:30:00 UTC',
      { actions: { ...push, alarm: false } },
      [3],
      { mutedUntilTs: until },
    ],
    [
      'fires when its cause holds; people are notified then',
      { actions: push },
      [3],
      { snoozedUntilTs: now },
    ],
    [
      'fires when its cause holds; its alarm is acknowledged: nobody is notified again',
      { actions: push },
      [9],
      { state: 'acknowledged', told: 'told' },
    ],
    [
      'fires when its cause holds; its alarm is open, but nobody was notified (no-recipient)',
      { actions: push },
      [9],
      { state: 'open', told: 'none', notNotified: 'no-recipient' },
    ],
    [
      'fires when its cause holds; people are notified each time',
      { actions: { ...push, alarm: false } },
      [3],
    ],
    [
      'fires when its cause holds; opens an alarm, notifies nobody',
      { actions: { alarm: true } },
      [3],
    ],
    ['fires when its cause holds; its alarm is open', { actions: { alarm: true } }, [9]],
  ])('%s', (text, event, values, standing) => {
    expect(describedOf(event, values, standing)?.text).toBe(text);
  });

  test('shows what is known of its alarm', () => {
    const standing = { state: 'open', told: 'told' } as const;
    expect(describedOf({ actions: push }, [9], standing)).toMatchObject({
      tells: 'alarm',
      alarm: standing,
    });
    expect(describedOf({}, [3])).not.toHaveProperty('alarm');
  });
});

describe('a sense whose measurements come too late', () => {
  test('is mentioned with each cause that reads it', () => {
    const late = { count: 12, newestTs: now };
    const words = 'they are older than the newest value, dated 2026-11-23 12:00:00 UTC';
    expect(describedOf({}, [3], undefined, late)?.causes).toMatchObject([
      { text: `does not agree; the last 12 came too late: ${words}`, late },
    ]);
  });

  test('is not mentioned if the last one came in time', () => {
    const [only] = describedOf({}, [3], undefined, { count: 0, newestTs: now })?.causes ?? [];
    expect(only?.text).toBe('does not agree');
    expect(only).not.toHaveProperty('late');
  });
});
