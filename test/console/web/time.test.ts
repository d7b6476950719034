import { expect, test } from 'vitest';
import {
  dayAt,
  daysLater,
  isoIn,
  monthAt,
  sayDay,
  sayFullTime,
  sayTime,
  tsOf,
  wallOf,
} from '../../../src/console/web/text/time.ts';

const at = (text: string) => Date.parse(text);
const reader = (timeZone: string, now: string, locale = 'en-GB') => ({
  locale,
  timeZone,
  nowTs: at(now),
});

// Clocks went back at 01:00 UTC: 03:00 became 02:00.
const berlin = reader('Europe/Berlin', '2026-10-25T22:00:00Z');

test('the hour that clocks show twice is unambiguous', () => {
  const [summer, winter] = [at('2026-10-25T00:30:00Z'), at('2026-10-25T01:30:00Z')];
  expect(sayTime(summer, berlin)).toBe('02:30 CEST');
  expect(sayTime(winter, berlin)).toBe('02:30 CET');
  expect(sayTime(at('2026-10-24T23:30:00Z'), berlin)).toBe('01:30');
  expect(sayTime(at('2026-10-25T02:30:00Z'), berlin)).toBe('03:30');
  expect(sayFullTime(summer, berlin)).toBe('25 Oct 2026, 02:30:00 CEST');
  expect(sayFullTime(winter, berlin)).toBe('25 Oct 2026, 02:30:00 CET');
  // By half an hour.
  const lordHowe = reader('Australia/Lord_Howe', '2027-04-03T15:30:00Z');
  const [before, after] = ['2027-04-03T14:45:00Z', '2027-04-03T15:15:00Z'].map(at);
  expect(sayTime(before ?? 0, lordHowe)).not.toBe(sayTime(after ?? 0, lordHowe));
});

test('a day of 25 hours is one day, and so is one of 23', () => {
  expect(sayTime(at('2026-10-24T22:00:00Z'), berlin)).toBe('00:00');
  expect(sayTime(at('2026-10-24T21:59:00Z'), berlin)).toBe('24 Oct, 23:59');
  const spring = reader('Europe/Berlin', '2027-03-28T21:59:00Z');
  expect(sayTime(at('2027-03-27T23:00:00Z'), spring)).toBe('00:00');
  expect(sayTime(at('2027-03-28T00:59:00Z'), spring)).toBe('01:59');
  expect(sayTime(at('2027-03-28T01:00:00Z'), spring)).toBe('03:00');
});

test("a day follows the account's zone, whatever the browser's, and the reader's language", () => {
  const ts = at('2026-11-22T23:30:00Z');
  expect(sayTime(ts, reader('Europe/Berlin', '2026-11-23T08:00:00Z'))).toBe('00:30');
  expect(sayTime(ts, reader('America/New_York', '2026-11-23T08:00:00Z', 'en-US'))).toBe(
    'Nov 22, 06:30 PM',
  );
  expect(sayDay(ts, reader('Europe/Berlin', '2027-01-01T08:00:00Z', 'de-DE'))).toBe(
    '23. Nov. 2026',
  );
});

const zone = 'Europe/Berlin';

test.each([
  ['2026-11-26T21:00', '2026-11-26T20:00:00Z'],
  ['2026-07-01T00:00', '2026-06-30T22:00:00Z'],
  // Shown twice: the first. Left out: an hour later.
  ['2026-10-25T02:30', '2026-10-25T00:30:00Z'],
  ['2026-03-29T02:30', '2026-03-29T01:30:00Z'],
])('a typed time is that of the account: %s', (wall, iso) => {
  expect(tsOf(wall, zone)).toBe(at(iso));
});

test('a time is typed as it is shown, in every zone; anything else is none', () => {
  for (const timeZone of [zone, 'Australia/Lord_Howe', 'America/St_Johns'])
    for (
      let ts = at('2026-01-01T00:10:00Z');
      ts < at('2027-01-01T00:00:00Z');
      ts += 97 * 3_600_000 + 60_000
    )
      expect([timeZone, wallOf(tsOf(wallOf(ts, timeZone), timeZone) ?? 0, timeZone)]).toEqual([
        timeZone,
        wallOf(ts, timeZone),
      ]);
  for (const text of ['', 'now', '2026-13-01T00:00']) expect(tsOf(text, zone)).toBe(undefined);
});

test('days and months begin at midnight, also when clocks change in them', () => {
  const night = at('2026-10-25T23:30:00Z');
  const hours = ({ start, end }: { start: number; end: number }) => (end - start) / 3_600_000;
  expect(hours(dayAt(night, zone, -1))).toBe(25);
  expect(wallOf(dayAt(night, zone, 0).start, zone)).toBe('2026-10-26T00:00');
  expect(hours(monthAt(night, zone, 0))).toBe(31 * 24 + 1);
  const january = monthAt(at('2027-01-15T12:00:00Z'), zone, -1);
  expect([january.start, january.end].map((ts) => wallOf(ts, zone))).toEqual([
    '2026-12-01T00:00',
    '2027-01-01T00:00',
  ]);
});

test('ISO 8601 in a zone has its offset, and is the same time', () => {
  expect(isoIn(zone)(at('2026-10-25T00:30:00Z'))).toBe('2026-10-25T02:30:00+02:00');
  expect(isoIn(zone)(at('2026-10-25T01:30:00.250Z'))).toBe('2026-10-25T02:30:00.250+01:00');
  expect(isoIn('America/St_Johns')(at('2026-07-01T12:00:00Z'))).toBe('2026-07-01T09:30:00-02:30');
});

// Clocks of Berlin went back on 25 October 2026 and forward on 29 March.
test.each([
  ['2026-10-26T08:00:30+01:00', -1, '2026-10-25T08:00:30+01:00'],
  ['2026-10-25T08:00+01:00', -1, '2026-10-24T08:00+02:00'],
  ['2026-10-24T08:00+02:00', 7, '2026-10-31T08:00+01:00'],
  ['2026-03-29T08:00+02:00', -1, '2026-03-28T08:00+01:00'],
  // Shown twice: the first one. Left out: as much later.
  ['2026-10-26T02:30+01:00', -1, '2026-10-25T02:30+02:00'],
  ['2026-03-30T02:30+02:00', -1, '2026-03-29T03:30+02:00'],
])('%s and %d days are %s by the clock on the wall', (from, days, to) => {
  expect(daysLater(at(from), 'Europe/Berlin', days)).toBe(at(to));
});
