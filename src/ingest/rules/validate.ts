import type { Sense } from '../../contract/configuration.ts';
import type { Rejection } from '../../contract/rejection.ts';
import type { ApplyLimits } from './scope.ts';

/** What is before it is no time of a measurement: mostly seconds, or a clock that was never set. */
const year2001 = 978_307_200_000;

/** What to say of such a time; empty for any other. */
function unitOf(ts: number): string {
  if (ts >= year2001) return '';
  const meant = ts * 1_000 >= year2001 ? ' It looks like seconds.' : '';
  return ` Expected milliseconds since 1970-01-01 (UTC); this is before the year 2001.${meant}`;
}

type TimeLimits = Pick<ApplyLimits, 'maxAheadMs' | 'doubtSpanMs'>;

/**
 * A time too far ahead of the arrival, or older than what is kept. While the service's clock is in doubt, only what
 * is so by the clock and also by where it should be. Null when fine.
 */
export function checkTime(
  ts: number,
  { arrivedTs, limits }: { arrivedTs: number; limits: TimeLimits },
  maxAgeMs: number,
  path: string,
): Rejection | null {
  const spanMs = limits.doubtSpanMs?.() ?? 0;
  if (ts > arrivedTs + Math.max(0, spanMs) + limits.maxAheadMs) {
    const message = `ts ${ts} is ${ts - arrivedTs} ms ahead of the service's clock; at most ${limits.maxAheadMs} ms are accepted.`;
    const details = { ts, maxAheadMs: limits.maxAheadMs };
    return { reason: 'future-timestamp', message, path, details };
  }
  if (ts < arrivedTs + Math.min(0, spanMs) - maxAgeMs) {
    const message = `ts ${ts} is older than what is kept (${maxAgeMs} ms before now).${unitOf(ts)}`;
    return { reason: 'expired-timestamp', message, path, details: { ts, maxAgeMs } };
  }
  return null;
}

/** A sense the configuration does not name, or a number outside its range. Null when fine. */
export function checkSense(
  senses: ReadonlyMap<string, Sense>,
  sId: string,
  val: unknown,
  path: string,
): Rejection | null {
  const sense = senses.get(sId);
  if (!sense) {
    const message = `The device's configuration has no sense ${sId}.`;
    return { reason: 'unknown-sense', message, path: `${path}/sId`, details: { sId } };
  }
  if (typeof val !== 'number') return null;
  const below = sense.min !== undefined && val < sense.min;
  const above = sense.max !== undefined && val > sense.max;
  if (!below && !above) return null;
  const message = `${val} is outside the range ${sense.min ?? '-∞'} to ${sense.max ?? '∞'} of sense ${sId}.`;
  const { min, max } = sense;
  const range = { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
  const details = { sId, val, ...range };
  return { reason: 'out-of-range', message, path: `${path}/val`, details };
}
