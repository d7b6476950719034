import type { WallMs } from '../../lib/clock-readings.ts';

/**
 * When a device's message counts as arrived (ms), and how many measurements and other inputs of that arrival have a
 * place. A planned message counts its own in `places`; what earlier messages had is never changed.
 */
export type Arrival = { readonly ts: WallMs; places: number };

/** A `smallint` holds a place and, below zero, whether the service gave the time. */
const mostPlaces = 32_767;

/** A message may be preceded by this many inputs, such as a tick (`inputs.ts`). */
const mostInputs = 8;

/** A clock this far below the last arrival was set back, ms. Clocks of processes differ by less. */
const breakMs = 60_000;

/**
 * The arrival of a message with `size` items, read at `arrivedTs`: never below the device's last one, because a tick or
 * another process's message can overtake one under way. If the clock was set back since (`nowTs`: its time now),
 * arrivals begin anew. `last`: null if the device had none.
 */
export function nextArrival(
  last: Arrival | null,
  arrivedTs: WallMs,
  size: number,
  nowTs: () => WallMs = () => Infinity,
): Arrival {
  if (last === null || arrivedTs > last.ts) return { ts: arrivedTs, places: 0 };
  if (arrivedTs < last.ts - breakMs && nowTs() < last.ts - breakMs)
    return { ts: arrivedTs, places: 0 };
  if (last.places + size + mostInputs <= mostPlaces) return { ...last };
  return { ts: last.ts + 1, places: 0 };
}

/** What was read of a device: its last arrival may have used any of its places. */
export const storedArrival = (ts: WallMs | null): Arrival | null =>
  ts === null ? null : { ts, places: mostPlaces };

/** `measurement.nth` of the next measurement: see migration 000041. Null, which costs nothing, is the usual case. */
export function takePlace(arrival: Arrival, isStamped: boolean): number | null {
  const place = arrival.places++;
  if (isStamped) return -1 - place;
  return place === 0 ? null : place;
}
