const lastTs = 8_640_000_000_000_000;
const iso =
  /^(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d))?$/;

/**
 * Parses a time as milliseconds since 1970. Digits are milliseconds; ISO 8601 with an offset is truncated to
 * milliseconds; a date alone means its first moment in UTC. Null for anything else, for times before 1970, and for days
 * that a month does not have.
 */
export function readTime(text: string): number | null {
  const ts = /^\d{1,16}$/.test(text) ? Number(text) : readIso(text);
  return ts >= 0 && ts <= lastTs ? ts : null;
}

/**
 * NaN if the text is not a valid time. The runtime alone would turn 31 September into 1 October (RFC 3339 section 5.7).
 */
function readIso(text: string): number {
  const { year, month, day } = iso.exec(text)?.groups ?? {};
  if (Number(day) > daysOf(Number(year), Number(month))) return Number.NaN;
  // oxlint-disable-next-line no-restricted-globals -- parses a time that was sent; reads no clock
  return day === undefined ? Number.NaN : new Date(text).getTime();
}

/** The last day of a month, 1 to 12, in UTC. */
// oxlint-disable-next-line no-restricted-globals -- parses a time that was sent; reads no clock
const daysOf = (year: number, month: number) => new Date(Date.UTC(year, month, 0)).getUTCDate();

/** Whether this machine knows the name from the IANA database, such as Europe/Berlin. */
export function isTimeZone(name: string): boolean {
  // The runtime also accepts an offset such as +02:00, which has no daylight saving time.
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
