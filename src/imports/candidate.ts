import { readTime } from '../lib/time.ts';

/** A line that says what was measured, by a device that is not looked for yet. `ts` in ms. */
export type ImportCandidate = {
  line: number;
  uuid: string;
  sId: string;
  ts: number;
  val: number;
  /** A position has its latitude in `val`. */
  long: number | undefined;
};

/** What stands in a line, by the names of its columns or members. */
export type Fields = {
  deviceAuthUuid: unknown;
  sId: unknown;
  val: unknown;
  lat: unknown;
  long: unknown;
  ts: unknown;
};

const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** As configurations have them: nothing else can be a device's. It is told again where it is not. */
const sIdForm = /^0x[0-9A-Fa-f]{1,1024}$/;

/** A candidate, or why it is none. */
export function toCandidate(fields: Fields, line: number): ImportCandidate | string {
  const { deviceAuthUuid, sId } = fields;
  if (typeof deviceAuthUuid !== 'string' || !uuidForm.test(deviceAuthUuid))
    return 'invalid: deviceAuthUuid is no UUID';
  if (typeof sId !== 'string' || !sIdForm.test(sId))
    return 'invalid: sId is not 0x followed by hexadecimal digits';
  const ts = toTs(fields.ts);
  if (ts === null)
    return 'invalid: ts is neither milliseconds since 1970 nor a time such as 2026-11-23T08:00:00Z';
  const value = toValue(fields);
  if (typeof value === 'string') return value;
  return { line, uuid: deviceAuthUuid.toLowerCase(), sId, ts, ...value };
}

function toTs(ts: unknown): number | null {
  if (typeof ts === 'string') return readTime(ts);
  return Number.isSafeInteger(ts) ? readTime(String(ts)) : null;
}

function toValue({ val, lat, long }: Fields): Pick<ImportCandidate, 'val' | 'long'> | string {
  const hasVal = val !== undefined && val !== null;
  const hasPlace = (lat !== undefined && lat !== null) || (long !== undefined && long !== null);
  if (hasVal && hasPlace) return 'invalid: val stands beside lat and long';
  if (typeof val === 'object' && val !== null) {
    return toPlace('lat' in val ? val.lat : undefined, 'long' in val ? val.long : undefined);
  }
  if (hasPlace) return toPlace(lat, long);
  if (!hasVal) return 'invalid: neither val nor lat and long';
  // Zero has no sign in the history.
  return isFinite(val) ? { val: val + 0, long: undefined } : 'invalid: val is no finite number';
}

function toPlace(lat: unknown, long: unknown): Pick<ImportCandidate, 'val' | 'long'> | string {
  if (isFinite(lat) && isFinite(long) && Math.abs(lat) <= 90 && Math.abs(long) <= 180)
    return { val: lat + 0, long: long + 0 };
  return 'invalid: lat and long are not both degrees, -90 to 90 and -180 to 180';
}

const isFinite = (value: unknown): value is number => Number.isFinite(value);
