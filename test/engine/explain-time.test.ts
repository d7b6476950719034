import { describe, expect, test } from 'vitest';
import {
  type AskedAt,
  describeEvaluation,
  Description,
  explain,
} from '../../src/engine/explain.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { LastSeen } from '../../src/engine/last-seen.ts';
import { startRuntime } from '../../src/engine/runtime.ts';
import { profileOf, purposeWith } from './samples.ts';

const minute = 60_000;
const start = Date.UTC(2026, 10, 23, 12);

/** A value, and the minute in which it is measured and arrives. */
type Value = [atMinute: number, val: number];

/** Explains the only cause of a profile, installed at minute 0, after these values and at the given minute. */
function explained(
  threshold: object,
  thresholds: object,
  values: Value[],
  at: number,
  listening?: AskedAt['listening'],
) {
  const causes = [{ sId: '0x1', threshold, thresholds }];
  const profile = profileOf(purposeWith({ evId: 1, eventLog: true, causes }));
  const nowTs = start + at * minute;
  const evaluator = new Evaluator(profile, startRuntime(profile, start), listening);
  for (const [atMinute, val] of values) {
    const ts = start + atMinute * minute;
    const moment = { t: ts, arrivedTs: ts };
    evaluator.ticksUntil(ts);
    evaluator.ticksForcedBy('0x1', moment);
    evaluator.measure({ sId: '0x1', val, ts }, moment, true);
  }
  evaluator.ticksUntil(nowTs);
  const seen: LastSeen = Object.fromEntries(
    values.map(([atMinute, val]) => ['0x1', { ts: start + atMinute * minute, vals: [val] }]),
  );
  const explanation = explain(profile, evaluator.end(), seen, { nowTs, listening });
  const described = describeEvaluation(profile, explanation, { nowTs });
  expect(Description.parse(described)).toEqual(described);
  return described.events[0]?.causes[0];
}

const gt5 = { isGt: 5 };

describe('forMs', () => {
  const forMs = 10 * minute;

  test('says since when a run lasts, and when it is due', () => {
    const cause = explained(
      { forMs },
      gt5,
      [
        [1, 9],
        [2, 9],
      ],
      5.5,
    );
    expect(cause).toMatchObject({
      forMs,
      sinceTs: start + minute,
      // 2 s for messages in transit.
      dueTs: start + 11 * minute + 2_000,
      matched: 2,
      missing: 0,
      holds: false,
      text: 'agrees for 4 of 10 minutes, holds in 5 min 32 s',
    });
  });

  test('says how many measurements are missing', () => {
    const cause = explained({ forMs, count: 3 }, gt5, [[1, 9]], 2);
    expect(cause?.text).toBe('agrees for 1 of 10 minutes, 2 are missing');
    expect(cause).not.toHaveProperty('dueTs');
  });

  test.each<[string, Value[]]>([
    ['no measurement yet', []],
    [
      'begins with the next measurement that agrees',
      [
        [1, 9],
        [2, 3],
      ],
    ],
    // It fired at minute 11.
    ['begins with the next measurement that agrees', [[1, 9]]],
  ])('%s', (text, values) => {
    const cause = explained({ forMs }, gt5, values, 15);
    expect(cause?.text).toBe(text);
    expect(cause).not.toHaveProperty('sinceTs');
  });
});

describe('noneForMs', () => {
  const noneForMs = 15 * minute;

  test('says since when it is silent, and when it is due', () => {
    expect(explained({ noneForMs }, {}, [[2, 9]], 14.5)).toMatchObject({
      noneForMs,
      sinceTs: start + 2 * minute,
      dueTs: start + 17 * minute,
      missing: 0,
      holds: false,
      text: 'silent for 12 of 15 minutes, holds in 2 min 30 s',
    });
  });

  test('counts from the installation, and stays complete after the firing', () => {
    expect(explained({ noneForMs }, {}, [], 5)?.text).toBe(
      'silent for 5 of 15 minutes, holds in 10 min',
    );
    expect(explained({ noneForMs }, {}, [], 20)).toMatchObject({
      holds: true,
      text: 'silent for 20 min, holds',
    });
  });

  test('does not count time in which nobody listened', () => {
    const gap = { fromTs: start + 5 * minute, toTs: start + 11 * minute };
    expect(explained({ noneForMs }, {}, [], 13, { gaps: [gap] })?.text).toBe(
      'silent for 7 of 15 minutes, holds in 8 min',
    );
    // A gap that lasts: the 5 minutes after it are still to come.
    const lasting = { fromTs: start + 5 * minute, toTs: null };
    expect(explained({ noneForMs }, {}, [], 13, { gaps: [lasting] })?.text).toBe(
      'silent for 5 of 15 minutes, holds in 10 min',
    );
  });
});

describe('over', () => {
  const over = { ms: 60 * minute, stat: 'delta' };

  test('says how long nothing will be compared', () => {
    expect(
      explained(
        { over },
        gt5,
        [
          [0, 1],
          [20, 2],
        ],
        21,
      ),
    ).toMatchObject({
      over,
      collectedMs: 20 * minute,
      text: 'change over 1 h is compared after half that time: 20 of 30 minutes',
    });
    expect(explained({ over }, gt5, [], 1)?.text).toContain('0 of 30 minutes');
  });

  test('says what is compared', () => {
    expect(
      explained(
        { over },
        gt5,
        [
          [0, 1],
          [20, 2],
          [40, 4.5],
        ],
        41,
      ),
    ).toMatchObject({
      statistic: 3.5,
      text: 'change over 1 h 3.5: does not agree',
    });
  });
});

test('maxAgeMs is shown', () => {
  expect(
    explained(
      { maxAgeMs: minute, count: 3 },
      gt5,
      [
        [1, 9],
        [5, 9],
      ],
      6,
    ),
  ).toMatchObject({
    maxAgeMs: minute,
    matched: 1,
    text: '1 of 3 measurements agree, 2 are missing',
  });
});
