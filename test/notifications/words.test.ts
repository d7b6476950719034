import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CauseDetail, SenseEvent } from '../../src/contract/event.ts';
import {
  bodyOf,
  countSegments,
  describeTime,
  titleOf,
  type Wording,
  words,
  wordsOf,
} from '../../src/notifications/text.ts';

// 2026-07-01, 02:30 in Berlin.
const ts = Date.UTC(2026, 6, 1, 0, 30);

const wording: Wording = {
  language: 'en',
  timeZone: 'Europe/Berlin',
  deviceName: 'Freezer',
  senses: { '0x10': { name: 'Temperature', unit: '°C', decimals: 1 } },
  nowTs: ts,
};

const detail: CauseDetail = {
  sId: '0x10',
  orderId: 0,
  thresholds: { isGt: 8 },
  compared: 9.7,
  negate: false,
  matched: 2,
  of: 2,
  needed: 2,
};

function eventOf(why: CauseDetail[] | undefined, val = 9.7): SenseEvent {
  const engine = { pId: 'p', puId: 1, stId: 1, evId: 3, ts };
  const senses = [...new Set((why ?? [detail]).map(({ sId }) => sId))].map((sId) => ({
    sId,
    val,
    ts,
  }));
  return { type: 'sense', ts, cause: { engine, senses }, ...(why ? { why } : {}) };
}

function bodyFor(
  why: CauseDetail[] | undefined,
  change: Partial<Wording> = {},
  val?: number,
): string {
  const push = {
    accountId: 1,
    deviceId: 1,
    deviceUuid: 'u',
    kind: 'push' as const,
    name: 'Too warm',
  };
  return bodyOf({ ...push, event: eventOf(why, val) }, { ...wording, ...change }, false);
}

const minute = 60_000;
const once = { matched: 1, of: 1, needed: 1 };

describe('a sentence does not contradict itself', () => {
  const only = { ...detail, ...once };
  const limit = (thresholds: CauseDetail['thresholds'], compared: number) =>
    bodyFor([{ ...only, thresholds, compared }], {}, compared).replace(/ \(.*$/, '');

  test.each([
    [{ isGt: 8 }, 8.04, 'Temperature 8.04 °C, above 8.00 °C'],
    [{ isLt: 8 }, 7.96, 'Temperature 7.96 °C, below 8.00 °C'],
    [{ isLt: 0 }, -0.04, 'Temperature -0.04 °C, below 0.00 °C'],
    [{ isGt: 8, isLt: 9 }, 8.996, 'Temperature 8.996 °C, above 8.000 °C and below 9.000 °C'],
    [{ isNotIn: [1, 8] }, 8.04, 'Temperature 8.04 °C, none of 1.00 °C, 8.00 °C'],
    // Nothing to tell apart: the sense's own decimals, and 0 has no sign.
    [{ isGt: 8 }, 9.74, 'Temperature 9.7 °C, above 8.0 °C'],
    [{ isGt: -1 }, -0.04, 'Temperature 0.0 °C, above -1.0 °C'],
    [{ isOneOf: [0] }, -0, 'Temperature 0.0 °C, one of 0.0 °C'],
  ])('%j: %d', (thresholds, val, said) => {
    expect(limit(thresholds, val)).toBe(said);
  });

  test('nor if a statistic, a difference or a rounded value was compared, in either language', () => {
    const over = { stat: 'avg' as const, ms: 60 * minute };
    expect(bodyFor([{ ...only, compared: 8.04, over }], { language: 'de' })).toContain(
      'Mittelwert 8,04 °C in einer Stunde, über 8,00 °C',
    );
    expect(bodyFor([{ ...only, compared: 8, thresholds: { isGt: 7.99 } }], {}, 7.96)).toContain(
      'Temperature 7.96 °C, taken as 8.00 °C, above 7.99 °C',
    );
  });

  test('limit and value look different, whatever the numbers are', () => {
    const near = fc.tuple(
      fc.double({ noNaN: true, min: -1e6, max: 1e6 }),
      fc.integer({ min: 1, max: 12 }),
    );
    fc.assert(
      fc.property(near, fc.option(fc.integer({ min: 0, max: 6 })), ([isGt, exponent], decimals) => {
        const val = isGt + 10 ** -exponent;
        fc.pre(val > isGt);
        const senses = { '0x10': { name: 'T', unit: null, decimals } };
        const why = [{ ...only, thresholds: { isGt }, compared: val }];
        const text = bodyFor(why, { senses }, val);
        const [, value, bound] = /^T (\S+), above (\S+) \(/.exec(text) ?? [];
        expect(Number(value)).toBeGreaterThan(Number(bound));
        expect(text).not.toMatch(/-0(\.0+)?[ ,]/);
      }),
    );
  });
});

describe('a condition on time says how long it lasted', () => {
  const held = { ...detail, heldMs: 10 * minute, sinceTs: ts - 10 * minute };
  const silent = { ...detail, ...once, thresholds: {}, sinceTs: ts - 90 * minute };

  test.each<[string, Partial<CauseDetail>, string]>([
    ['forMs', held, 'Temperature 9.7 °C, above 8.0 °C, for 10 minutes'],
    [
      'noneForMs',
      { ...silent, silentMs: 90 * minute },
      'Temperature, nothing received for 1 hour 30 minutes, last value 9.7 °C',
    ],
    [
      'a day',
      { ...silent, silentMs: 24 * 60 * minute },
      'Temperature, nothing received for 1 day, last value 9.7 °C',
    ],
  ])('%s', (_, more, body) => {
    const why = { ...detail, ...more };
    // A silence compares nothing.
    if (why.silentMs !== undefined) delete why.compared;
    expect(bodyFor([why])).toContain(body);
  });

  test('in German', () => {
    expect(bodyFor([held], { language: 'de' })).toContain('über 8,0 °C, 10 Minuten lang');
    const { compared: _compared, ...none } = silent;
    expect(bodyFor([{ ...none, silentMs: 2 * 24 * 60 * minute }], { language: 'de' })).toContain(
      'Temperature, 2 Tage lang nichts empfangen, letzter Wert 9,7 °C',
    );
  });

  test('for a sense that never sent a value', () => {
    const { compared: _compared, ...none } = { ...silent, silentMs: 30 * minute };
    const event = eventOf([none]);
    event.cause.senses = [];
    const push = { accountId: 1, deviceId: 1, deviceUuid: 'u', kind: 'push' as const, name: 'x' };
    expect(bodyOf({ ...push, event }, wording, false)).toContain(
      'Temperature, nothing received for 30 minutes',
    );
  });
});

describe('a message says', () => {
  test('which device and event it is about', () => {
    const push = { accountId: 1, deviceId: 1, deviceUuid: 'u', kind: 'push' as const };
    const event = eventOf([detail]);
    expect(titleOf({ ...push, name: 'Too warm', event }, wording)).toBe('Freezer: Too warm');
    expect(titleOf({ ...push, name: '', event }, { ...wording, language: 'de' })).toBe(
      'Freezer: Ereignis 3',
    );
    const sms = { ...push, kind: 'sms' as const, phoneNumber: '+4201', text: 'Come home' };
    expect(titleOf({ ...sms, name: 'Too warm', event }, wording)).toBe('Freezer: Too warm');
  });

  test.each<[string, Partial<CauseDetail>, string]>([
    ['above', {}, 'Temperature 9.7 °C, above 8.0 °C, 2 of the last 2'],
    ['once', { matched: 1, of: 1, needed: 1 }, 'Temperature 9.7 °C, above 8.0 °C'],
    ['below', { thresholds: { isLt: 8 } }, 'Temperature 9.7 °C, below 8.0 °C, 2 of the last 2'],
    [
      'between',
      { thresholds: { isGt: 8, isLt: 10 } },
      'Temperature 9.7 °C, above 8.0 °C and below 10.0 °C, 2 of the last 2',
    ],
    [
      'outside',
      { thresholds: { isGt: 8, isLt: 10 }, negate: true },
      'Temperature 9.7 °C, not (above 8.0 °C and below 10.0 °C), 2 of the last 2',
    ],
    [
      'one of many',
      { thresholds: { isOneOf: [1, 2, 3, 4, 5, 6] } },
      'Temperature 9.7 °C, one of 1.0 °C, 2.0 °C, 3.0 °C, 4.0 °C, 5.0 °C, …, 2 of the last 2',
    ],
    [
      'none of',
      { thresholds: { isNotIn: [1] } },
      'Temperature 9.7 °C, none of 1.0 °C, 2 of the last 2',
    ],
    ['any', { thresholds: { isAny: true }, matched: 1, of: 1 }, 'Temperature 9.7 °C'],
    [
      'a difference',
      { compared: 1.2, relative: true, thresholds: { isGt: 1 } },
      'Temperature 9.7 °C, changed by 1.2 °C, above 1.0 °C, 2 of the last 2',
    ],
    [
      'a rounded number',
      { compared: 10, thresholds: { isGt: 8 } },
      'Temperature 9.7 °C, taken as 10.0 °C, above 8.0 °C, 2 of the last 2',
    ],
  ])('what was measured and which condition it met: %s', (_, change, expected) => {
    expect(bodyFor([{ ...detail, ...change }])).toBe(`${expected} (02:30 CEST)`);
  });

  test.each<[string, NonNullable<CauseDetail['over']>, string]>([
    ['en', { stat: 'delta', ms: 60 * minute }, 'change -6 % in an hour, below -5 %'],
    ['en', { stat: 'avg', ms: 24 * 60 * minute }, 'average -6 % over a day, below -5 %'],
    ['en', { stat: 'sum', ms: 90 * minute }, 'sum -6 % in 1 hour 30 minutes, below -5 %'],
    ['en', { stat: 'min', ms: 60 * minute }, 'lowest value -6 % in an hour, below -5 %'],
    ['en', { stat: 'max', ms: 60 * minute }, 'highest value -6 % in an hour, below -5 %'],
    ['en', { stat: 'stddev', ms: 60 * minute }, 'standard deviation -6 % over an hour, below -5 %'],
    ['de', { stat: 'min', ms: 60 * minute }, 'kleinster Wert -6 % in einer Stunde, unter -5 %'],
    ['de', { stat: 'max', ms: 60 * minute }, 'größter Wert -6 % in einer Stunde, unter -5 %'],
    [
      'de',
      { stat: 'stddev', ms: 60 * minute },
      'Standardabweichung -6 % in einer Stunde, unter -5 %',
    ],
    ['de', { stat: 'delta', ms: 60 * minute }, 'Änderung -6 % in einer Stunde, unter -5 %'],
    ['de', { stat: 'avg', ms: 3 * 24 * 60 * minute }, 'Mittelwert -6 % in 3 Tagen, unter -5 %'],
    ['de', { stat: 'sum', ms: 24 * 60 * minute }, 'Summe -6 % in einem Tag, unter -5 %'],
  ])('of what a statistic is, in %s: %o', (language, over, expected) => {
    const why = { ...detail, ...once, over, compared: -6, thresholds: { isLt: -5 } };
    const senses = { '0x10': { name: 'Level', unit: '%' } };
    expect(bodyFor([why], { language, senses }, 44)).toMatch(`Level 44 %, ${expected} (`);
    // Even if it is the number that was measured.
    expect(bodyFor([why], { language, senses }, -6)).toMatch(`Level -6 %, ${expected} (`);
  });

  test('each cause, in the language of the account', () => {
    const second = { ...detail, sId: '0x11', thresholds: { isLt: 0.5 }, matched: 1, of: 1 };
    expect(bodyFor([detail, second], { language: 'de', timeZone: null }, 0.25)).toBe(
      'Temperature 0,3 °C, gewertet als 9,7 °C, über 8,0 °C, 2 der letzten 2; ' +
        '0x11 0,25, gewertet als 9,7, unter 0,5 (00:30 UTC)',
    );
  });

  test('the number of a sense that has no words, and what a device itself reported', () => {
    expect(bodyFor([detail], { senses: {} })).toBe(
      '0x10 9.7, above 8, 2 of the last 2 (02:30 CEST)',
    );
    expect(bodyFor(undefined)).toBe('Temperature 9.7 °C (02:30 CEST)');
  });
});

test.each([
  ['Europe/Berlin', 0, 'en', '02:30 CEST'],
  ['Europe/Berlin', 0, 'de', '02:30 MESZ'],
  ['Asia/Kolkata', 0, 'en', '06:00 GMT+5:30'],
  ['America/New_York', 0, 'en', '20:30 GMT-4'],
  [null, 0, 'en', '00:30 UTC'],
  ['Nowhere/Else', 0, 'en', '00:30 UTC'],
  ['Europe/Berlin', 86_400_000, 'en', '1 Jul 2026, 02:30 CEST'],
])('the time in %s, read %d ms later in %s: %s', (zone, laterMs, language, expected) => {
  expect(describeTime(ts, ts + laterMs, zone, wordsOf(language))).toBe(expected);
});

test('both languages have all texts, and no text twice', () => {
  expect(Object.keys(words.de)).toEqual(Object.keys(words.en));
  expect(words.de.confirmBody('LINK')).toContain('\n\nLINK\n\n');
  expect(words.en.confirmBody('LINK')).toContain('\n\nLINK\n\n');
});

/** What is sent to a telephone of a device with this name. */
function smsText(deviceName: string, text: string): string {
  const sms = { kind: 'sms' as const, phoneNumber: '+420123456789', text };
  const asked = { accountId: 1, deviceId: 1, deviceUuid: 'u', name: 'Too warm' };
  return bodyOf({ ...asked, ...sms, event: eventOf(undefined) }, { ...wording, deviceName }, false);
}

describe('an SMS', () => {
  test.each([
    ['a'.repeat(160), 1],
    ['a'.repeat(161), 2],
    ['€'.repeat(80), 1],
    ['€'.repeat(81), 2],
    ['ж'.repeat(70), 1],
    ['ж'.repeat(71), 2],
    ['a'.repeat(306), 2],
    ['a'.repeat(307), 3],
  ])('of %j takes %d segments', (text, segments) => {
    expect(countSegments(text)).toBe(segments);
  });

  test.each([
    ['Freezer', 'Too warm', 'Freezer: Too warm'],
    ['Freezer', 'The Freezer is warm', 'The Freezer is warm'],
    ['', 'Too warm', 'Too warm'],
    ['Freezer', 'x'.repeat(297), `Freezer: ${'x'.repeat(297)}`],
    ['Freezer', 'x'.repeat(298), 'x'.repeat(298)],
    ['Холодильник', 'x'.repeat(140), 'x'.repeat(140)],
  ])('of %j saying %j', (name, text, expected) => {
    expect(smsText(name, text)).toBe(expected);
  });

  test('contains the text of its purpose whatever the name, and never exceeds two segments because of a name', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.string({ unit: 'grapheme' }),
        (name, text) => {
          const sent = smsText(name, text);
          expect(sent.endsWith(text)).toBe(true);
          expect(sent === text || countSegments(sent) <= 2).toBe(true);
        },
      ),
    );
  });
});
