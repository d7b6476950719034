import { isTimeZone } from '../../lib/time-zone.ts';
import { dateFormat } from './formats.ts';
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
  const zone = timeZone === null ? 'UTC' : zoneOf(timeZone);
  const day = dateFormat(words.locale, { timeZone: zone, dateStyle: 'medium' });
  const time = dateFormat(words.locale, {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  }).format(ts);
  return day.format(ts) === day.format(nowMs) ? time : `${day.format(ts)}, ${time}`;
}

/** Stored ones are few, and were known to some machine. */
const zones = new Map<string, string>();

function zoneOf(timeZone: string): string {
  const known = zones.get(timeZone);
  if (known) return known;
  const zone = isTimeZone(timeZone) ? timeZone : 'UTC';
  if (zones.size < 1_000) zones.set(timeZone, zone);
  return zone;
}
