/** The time of day: milliseconds since 1970, UTC. It jumps, also back, where the machine's clock is set. */
export type Clock = () => number;

/** Milliseconds that only go forward, from no point in particular: for durations and time limits. */
export type MonotonicClock = () => number;

/** The machine's clocks. `service.ts` and `assembly/` hand them to everything that decides by time. */
export const systemClock: Clock = Date.now;
export const monotonicClock: MonotonicClock = performance.now.bind(performance);

/** Both. Tests run the whole service by clocks of their own. */
export type Clocks = { clock: Clock; monotonicClock: MonotonicClock };
