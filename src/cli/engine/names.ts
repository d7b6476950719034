import type { EventName } from '../../contract/event.ts';
import type { Measurement } from '../../contract/measurement.ts';
import type { Place } from '../../contract/place.ts';
import { findEvent, type Profile } from '../../engine/compile.ts';

/** "2026-11-23 08:10:00.000Z"; a time that no calendar has stays a number. */
export function timeText(ts: number): string {
  const time = new Date(ts);
  return Number.isNaN(time.getTime()) ? `${ts} ms` : time.toISOString().replace('T', ' ');
}

/** `state 2 "warm" of purpose 1`. */
export function placeText({ puId, stId }: Place, profile: Profile): string {
  const name = profile.purposes.get(puId)?.states.get(stId)?.name;
  return `state ${stId}${name ? ` ${JSON.stringify(name)}` : ''} of purpose ${puId}`;
}

/** `"too warm" (event 1 of state 1 of purpose 3)`. */
export function eventText({ puId, stId, evId }: EventName, profile: Profile): string {
  const name = findEvent(profile, { puId, stId }, evId)?.name;
  const number = `event ${evId} of state ${stId} of purpose ${puId}`;
  return name ? `${JSON.stringify(name)} (${number})` : number;
}

/** `0x10 -9 of 2026-11-23 08:10:00.000Z`. */
export function measuredText({ sId, val, ts }: Measurement): string {
  const value = typeof val === 'number' ? String(val) : `${val.lat} ${val.long}`;
  return `${sId} ${value} of ${timeText(ts)}`;
}
