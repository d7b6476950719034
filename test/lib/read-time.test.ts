import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readTime } from '../../src/lib/time.ts';

describe('the time in a text', () => {
  test.each([
    ['0', 0],
    ['1795600000000', 1_795_600_000_000],
    ['2026-09-30', Date.UTC(2026, 8, 30)],
    ['2024-02-29', Date.UTC(2024, 1, 29)],
    ['2000-02-29T23:59:59Z', Date.UTC(2000, 1, 29, 23, 59, 59)],
    ['2026-03-29T02:30:00.9876+01:00', Date.UTC(2026, 2, 29, 1, 30, 0, 987)],
    ['2026-12-31T23:00-0130', Date.UTC(2027, 0, 1, 0, 30)],
  ])('%s', (text, ts) => {
    expect(readTime(text)).toBe(ts);
  });

  test.each([
    [
      'a day that the month does not have',
      ['2026-09-31', '2026-02-30', '2026-02-29', '1900-02-29'],
    ],
    ['the same with a time', ['2026-09-31T10:00:00Z', '2026-04-31T10:00+02:00']],
    ['no day, no month', ['2026-09-00', '2026-00-10', '2026-13-01', '2026-09-32']],
    ['no time', ['2026-09-30T25:00:00Z', '2026-09-30T10:60:00Z', '2026-09-30T10:00:60Z']],
    ['no offset', ['2026-09-30T10:00:00', '2026-09-30 10:00:00Z', '']],
    ['before 1970', ['1969-12-31T23:59:59Z', '-1']],
  ])('%s: none', (_what, texts) => {
    expect(texts.map(readTime)).toEqual(texts.map(() => null));
  });

  test('every day of the calendar is read, and written the same', () => {
    const days = fc.record({
      year: fc.integer({ min: 1970, max: 2400 }),
      month: fc.integer({ min: 0, max: 13 }),
      day: fc.integer({ min: 0, max: 32 }),
    });
    fc.assert(
      fc.property(days, ({ year, month, day }) => {
        const text = `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`;
        const ts = readTime(text);
        const date = new Date(Date.UTC(year, month - 1, day));
        const isDay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
        expect(ts).toBe(isDay ? date.getTime() : null);
      }),
    );
  });
});
