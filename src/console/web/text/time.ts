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
const dayOf = (ts: number, timeZone: string | undefined) =>
  new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short' }).format(ts);

/** In the night when clocks are set back; by half an hour on Lord Howe Island. */
function isShownTwice(ts: number, timeZone: string | undefined): boolean {
  const wall = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  const shown = wall.format(ts);
  return [-60, -30, 30, 60].some((minutes) => wall.format(ts + minutes * minuteMs) === shown);
}
