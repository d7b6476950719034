/** Who reads a time; without a zone, the browser's applies. */
type Reader = { locale: string; timeZone: string | undefined; nowTs: number };

const minuteMs = 60_000;

/** A time as people say it: without the date if it is today, and with the zone if the clock shows that time twice. */
export function sayTime(ts: number, reader: Reader): string {
  const { locale, timeZone } = reader;
  const options = { timeZone, hour: '2-digit', minute: '2-digit' } as const;
  const zone = isShownTwice(ts, timeZone) ? ({ timeZoneName: 'short' } as const) : {};
  const time = new Intl.DateTimeFormat(locale, { ...options, ...zone }).format(ts);
  return isToday(ts, reader) ? time : `${sayDay(ts, reader)}, ${time}`;
}

/** The full time, to the second, with its zone. */
export function sayFullTime(ts: number, { locale, timeZone }: Reader): string {
  const date = new Intl.DateTimeFormat(locale, { timeZone, dateStyle: 'medium' }).format(ts);
  const options = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const;
  const time = new Intl.DateTimeFormat(locale, { timeZone, ...options, timeZoneName: 'short' });
  return `${date}, ${time.format(ts)}`;
}

/** A day; with the year if it is another one. */
export function sayDay(ts: number, { locale, timeZone, nowTs }: Reader): string {
  const isThisYear = dayOf(ts, timeZone).slice(0, 4) === dayOf(nowTs, timeZone).slice(0, 4);
  const year = isThisYear ? {} : ({ year: 'numeric' } as const);
  const options = { timeZone, day: 'numeric', month: 'short', ...year } as const;
  return new Intl.DateTimeFormat(locale, options).format(ts);
}

const isToday = (ts: number, { timeZone, nowTs }: Reader) =>
  dayOf(ts, timeZone) === dayOf(nowTs, timeZone);

/** As 2026-10-25, which sorts and compares. */
export const dayOf = (ts: number, timeZone: string | undefined) =>
  new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short' }).format(ts);

/** In the night when clocks are set back; by half an hour on Lord Howe Island. */
function isShownTwice(ts: number, timeZone: string | undefined): boolean {
  const wall = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  const shown = wall.format(ts);
  return [-60, -30, 30, 60].some((minutes) => wall.format(ts + minutes * minuteMs) === shown);
}

/** A time as a field of date and time has it: 2026-10-25T02:30, in the zone. */
export function wallOf(ts: number, timeZone: string): string {
  const format = new Intl.DateTimeFormat('sv', {
    timeZone,
    dateStyle: 'short',
    timeStyle: 'short',
  });
  return format.format(ts).replace(' ', 'T');
}

/**
 * The time that a clock of the zone shows as this; undefined if it is no such text. Of a time that it shows twice the
 * first one; of a time that it leaves out, the one as much later as the clock is set forward.
 */
export function tsOf(wall: string, timeZone: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/.test(wall)) return undefined;
  const asUtc = parse(`${wall.slice(0, 16)}Z`);
  if (Number.isNaN(asUtc)) return undefined;
  const offsetAt = (ts: number) =>
    parse(`${wallOf(ts, timeZone)}Z`) - Math.floor(ts / minuteMs) * minuteMs;
  // The offsets of a day before and a day after: clocks change once between them at most.
  const [before, after] = [asUtc - dayMs, asUtc + dayMs].map(offsetAt) as [number, number];
  const found = [asUtc - before, asUtc - after].filter(
    (ts) => parse(`${wallOf(ts, timeZone)}Z`) === asUtc,
  );
  return found.length === 0 ? asUtc - before : Math.min(...found);
}

// oxlint-disable-next-line no-restricted-globals -- a given time
const parse = (text: string): number => Date.parse(text);

const dayMs = 86_400_000;

/**
 * The time some days earlier or later at which a clock of the zone shows the same. A time that it shows twice or leaves
 * out is that of `tsOf`.
 */
export function daysLater(ts: number, timeZone: string, days: number): number {
  const moved = parse(`${wallOf(ts, timeZone)}Z`) + days * dayMs;
  const rest = ((ts % minuteMs) + minuteMs) % minuteMs;
  return (tsOf(wallOf(moved, 'UTC'), timeZone) ?? ts + days * dayMs) + rest;
}

/** From midnight to midnight in the zone: today (0), yesterday (-1). */
export function dayAt(nowTs: number, timeZone: string, by: number): { start: number; end: number } {
  const midnight = (days: number) => {
    const noon = parse(`${dayOf(nowTs, timeZone)}T12:00Z`) + days * dayMs;
    return tsOf(`${dayOf(noon, 'UTC')}T00:00`, timeZone) ?? nowTs;
  };
  return { start: midnight(by), end: midnight(by + 1) };
}

/** From the first to the next first of a month in the zone: this month (0), the last one (-1). */
export function monthAt(
  nowTs: number,
  timeZone: string,
  by: number,
): { start: number; end: number } {
  const [year = 0, month = 1] = dayOf(nowTs, timeZone).split('-').map(Number);
  const first = (months: number) => {
    const all = year * 12 + month - 1 + months;
    const text = `${Math.floor(all / 12)}-${String((all % 12) + 1).padStart(2, '0')}-01T00:00`;
    return tsOf(text, timeZone) ?? nowTs;
  };
  return { start: first(by), end: first(by + 1) };
}

/** Writes times as ISO 8601 in the zone: 2026-10-25T02:30:00+02:00, with milliseconds if there are any. */
export function isoIn(timeZone: string): (ts: number) => string {
  const format = new Intl.DateTimeFormat('sv', {
    timeZone,
    dateStyle: 'short',
    timeStyle: 'medium',
  });
  return (ts) => {
    const wall = format.format(ts).replace(' ', 'T');
    const ms = ((ts % 1_000) + 1_000) % 1_000;
    const minutes = Math.round((parse(`${wall}Z`) - (ts - ms)) / minuteMs);
    const size = Math.abs(minutes);
    const two = (number: number) => String(number).padStart(2, '0');
    const offset = `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
    return `${wall}${ms === 0 ? '' : `.${String(ms).padStart(3, '0')}`}${offset}`;
  };
}
