const lastTs = 8_640_000_000_000_000;
const iso =
  /^(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d))?$/;

/**
 * Milliseconds since 1970 of a text: digits are those, ISO 8601 with an offset is cut to whole ones, and a date
 * alone is its first moment in UTC. Null where it is none of these, before 1970, or of a day that no month has.
 */
export function readTime(text: string): number | null {
  const ts = /^\d{1,16}$/.test(text) ? Number(text) : readIso(text);
  return ts >= 0 && ts <= lastTs ? ts : null;
}

/** NaN where it is none. The runtime alone would make 1 October of 31 September (RFC 3339 section 5.7). */
function readIso(text: string): number {
  const { year, month, day } = iso.exec(text)?.groups ?? {};
  if (Number(day) > daysOf(Number(year), Number(month))) return Number.NaN;
  // oxlint-disable-next-line no-restricted-globals -- parses a time that was sent; reads no clock
  return day === undefined ? Number.NaN : new Date(text).getTime();
}

/** The last day of a month, 1 to 12, in UTC. */
// oxlint-disable-next-line no-restricted-globals -- parses a time that was sent; reads no clock
const daysOf = (year: number, month: number) => new Date(Date.UTC(year, month, 0)).getUTCDate();

/** Whether it is a name of the IANA database that this machine knows, such as Europe/Berlin. */
export function isTimeZone(name: string): boolean {
  // An offset such as +02:00 is taken too, and knows no summer.
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
