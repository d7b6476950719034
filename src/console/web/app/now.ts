import { signal } from '@preact/signals';

/** This machine's clock, ms since 1970: for display only, never for decisions. */
export const now = (): number => Date.now();

/** The same as a signal that changes every ten seconds, so that displayed ages stay current. */
export const clock = signal(now());

setInterval(() => (clock.value = now()), 10_000);
