import { signal } from '@preact/signals';

/** How much later the service's clock is than this machine's, ms; 0 if they agree to a minute. */
export const clockSkewMs = signal(0);

/** The service's time, ms since 1970: by this machine's clock, put right if it is wrong. */
export const now = (): number => Date.now() + clockSkewMs.peek();

/** The same as a signal that changes every ten seconds, so that displayed ages stay current. */
export const clock = signal(now());

setInterval(() => (clock.value = now()), 10_000);

const worthSayingMs = 60_000;
/** Two answers a few seconds apart must not move the time back and forth. */
const sameMs = 5_000;

/** Compares the clocks by the time of an answer (`Date`, RFC 9110, 6.6.1), if it has one. */
export function compareClocks(answered: string | null): void {
  const ms = Date.parse(answered ?? '') - Date.now();
  if (Number.isNaN(ms)) return;
  const skewMs = Math.abs(ms) < worthSayingMs ? 0 : ms;
  if (Math.abs(skewMs - clockSkewMs.peek()) < sameMs) return;
  clockSkewMs.value = skewMs;
  clock.value = now();
}
