const lastTs = 8_640_000_000_000_000;
const iso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d))?$/;

/**
 * Milliseconds since 1970 of a text: digits are those, ISO 8601 with an offset is cut to whole ones, and a date
 * alone is its first moment in UTC. Null where it is none of these, or before 1970.
 */
export function readTime(text: string): number | null {
  const isDigits = /^\d{1,16}$/.test(text);
  const ts = isDigits ? Number(text) : iso.test(text) ? new Date(text).getTime() : Number.NaN;
  return ts >= 0 && ts <= lastTs ? ts : null;
}
