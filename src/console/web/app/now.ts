import { signal } from '@preact/signals';

/** This machine's clock, ms since 1970: for what is shown, never for what is decided. */
export const now = (): number => Date.now();

/** The same as a signal that moves every ten seconds: ages on the screen follow it. */
export const clock = signal(now());

setInterval(() => (clock.value = now()), 10_000);
