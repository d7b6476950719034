import type { Clock, MonotonicClock } from './clock-readings.ts';

/** The machine's clocks. `service.ts` and `assembly/` pass them to everything that decides by time. */
export const systemClock: Clock = Date.now;
export const monotonicClock: MonotonicClock = performance.now.bind(performance);
