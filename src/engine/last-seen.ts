import type { Measurement } from '../contract/measurement.ts';

/**
 * The newest time of a sense, and the values it has then, the first of them first: up to `maxValues`. `last`: the last of
 * them to come, where there are more.
 */
export type Newest = { ts: number; vals: Measurement['val'][]; last?: Measurement['val'] };

/** The newest of each sense: what is older, or one of these once more, is no news. Nothing clears it. */
export type LastSeen = Readonly<Record<string, Newest>>;

/** How many values one sense may have in one millisecond; further ones are not evaluated. */
export const maxValues = 16;

/**
 * What is the newest of a sense behind a measurement of it; `last` is what was. Null when the measurement
 * is not to be evaluated: older than the newest one, or of the same millisecond with a value seen then already.
 */
export function newestAfter(last: Newest | undefined, { val, ts }: Measurement): Newest | null {
  if (last && ts < last.ts) return null;
  const vals = last?.ts === ts ? withValue(last, val) : [storable(val)];
  return vals && { ts, vals };
}

/** Takes a measurement into the memory of its sense. Null when it is not to be evaluated: `newestAfter`. */
export function notice(seen: LastSeen, measurement: Measurement): LastSeen | null {
  const { sId } = measurement;
  const newest = newestAfter(Object.hasOwn(seen, sId) ? seen[sId] : undefined, measurement);
  return newest && { ...seen, [sId]: newest };
}

/** With a value that is stored beyond those that are evaluated: it is none of them, and the last to come. */
export function withLast(newest: Newest, { val, ts }: Measurement): Newest {
  const isBeyond = newest.ts === ts && newest.vals.length >= maxValues;
  return isBeyond ? { ...newest, last: storable(val) } : newest;
}

function withValue({ vals }: Newest, val: Measurement['val']): Newest['vals'] | null {
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
