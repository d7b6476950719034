/**
 * What the two clocks say, told apart for the type checker. A plain number passes for either, so that a sum, a
 * row of the database or a test needs no cast; a reading of one clock never passes for one of the other.
 */

/** The time of day: milliseconds since 1970, UTC. What holds one is named `…Ts`, and the present `nowTs`. */
export type WallMs = number & { readonly clock?: 'wall' };

/** Milliseconds since no point in particular, for durations and time limits. The present is `monotonicMs`. */
export type MonotonicMs = number & { readonly clock?: 'monotonic' };

/** Reads the time of day. It jumps, also back, where the machine's clock is set. */
export type Clock = () => WallMs;

/** Reads a clock that only goes forward. */
export type MonotonicClock = () => MonotonicMs;

/** Both. Tests run the whole service by clocks of their own. */
export type Clocks = { clock: Clock; monotonicClock: MonotonicClock };
