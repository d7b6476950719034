import { isTimeZone } from '../../lib/time-zone.ts';
import type { Words } from './words.ts';

/**
 * A time of day with the zone's short name, "02:30 CEST"; with its date where that is another day than
 * `nowMs`. A zone that this machine does not know is UTC.
 */
export function describeTime(
  ts: number,
  nowMs: number,
  timeZone: string | null,
  words: Words,
): string {
  const zone = timeZone !== null && isTimeZone(timeZone) ? timeZone : 'UTC';
  const day = new Intl.DateTimeFormat(words.locale, { timeZone: zone, dateStyle: 'medium' });
  const time = new Intl.DateTimeFormat(words.locale, {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  }).format(ts);
  return day.format(ts) === day.format(nowMs) ? time : `${day.format(ts)}, ${time}`;
}
