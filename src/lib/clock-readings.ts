/**
 * Readings of the two clocks, which the type checker tells apart. A plain number passes for either, so sums, database
 * rows and tests need no cast. A reading of one clock never passes for one of the other.
 */

/** The time of day: milliseconds since 1970, UTC. Variables are named `…Ts`, and the current time `nowTs`. */
export type WallMs = number & { readonly clock?: 'wall' };

/** Milliseconds since an arbitrary point, for durations and time limits. The current time is `monotonicMs`. */
export type MonotonicMs = number & { readonly clock?: 'monotonic' };

/** Reads the time of day. It jumps, backwards too, when the machine's clock is set. */
export type Clock = () => WallMs;

/** Reads a clock that only moves forward. */
export type MonotonicClock = () => MonotonicMs;

/** Both clocks. Tests run the whole service with clocks of their own. */
export type Clocks = { clock: Clock; monotonicClock: MonotonicClock };
