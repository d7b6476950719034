import type { Environment } from './environment.ts';

type StopSettings = Pick<Environment, 'DRAIN_DELAY_MS' | 'STOP_TIMEOUT_MS'>;

/** Docker kills a container 10 s after it was asked to stop; a second is for what goes between. */
const usualMs = 9_000;
/** What finishing, storing and giving back have beside the delay where nothing else is said. */
const usualDrainMs = 5_000;
/** Less would cut what a stop has to do even where nothing hangs. */
const leastDrainMs = 2_000;

/** From being asked to stop to the exit, in milliseconds. */
export function stopTimeoutOf({ DRAIN_DELAY_MS, STOP_TIMEOUT_MS }: StopSettings): number {
  return STOP_TIMEOUT_MS ?? Math.max(usualMs, DRAIN_DELAY_MS + usualDrainMs);
}

/** What is wrong with the time that is left for stopping, in lines. */
export function checkStopTimeout(settings: StopSettings): string[] {
  const leastMs = settings.DRAIN_DELAY_MS + leastDrainMs;
  if (stopTimeoutOf(settings) >= leastMs) return [];
  return [
    `STOP_TIMEOUT_MS: expected ${leastMs} or more (DRAIN_DELAY_MS, and ${leastDrainMs} for stopping), got "${settings.STOP_TIMEOUT_MS}".`,
  ];
}
