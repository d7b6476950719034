import type { Measurement } from './measurement.ts';
import type { Runtime, Seen } from './runtime.ts';

/** How many values one sense may have in one millisecond; further ones are not evaluated. */
const maxValues = 16;

/**
 * Takes a measurement into the memory of its sense. Null when it is not to be evaluated: older than
 * the last evaluated one of that sense, or of the same millisecond with a value seen then already.
 */
export function notice(
  seen: Runtime['seen'],
  { sId, val, ts }: Measurement,
): Runtime['seen'] | null {
  const last = Object.hasOwn(seen, sId) ? seen[sId] : undefined;
  const vals = last?.ts === ts ? withValue(last, val) : [storable(val)];
  if (!vals || (last && ts < last.ts)) return null;
  return { ...seen, [sId]: { ts, vals } };
}

function withValue({ vals }: Seen, val: Measurement['val']): Seen['vals'] | null {
  if (vals.length >= maxValues || vals.some((other) => isSame(other, val))) return null;
  return [...vals, storable(val)];
}

function isSame(one: Measurement['val'], other: Measurement['val']): boolean {
  if (typeof one === 'number' || typeof other === 'number') return one === other;
  return one.lat === other.lat && one.long === other.long;
}

/** As JSON gives it back: no negative zero, nothing beside latitude and longitude. */
export function storable(val: Measurement['val']): Measurement['val'] {
  return typeof val === 'number' ? val + 0 : { lat: val.lat + 0, long: val.long + 0 };
}
