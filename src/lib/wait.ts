import { setTimeout as sleep } from 'node:timers/promises';

/** Waits `ms`, or until `stopping` aborts. Never rejects. */
export async function pause(ms: number, stopping: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stopping }).catch(() => undefined);
}

/** Waits for `work`, but no longer than `ms`. Returns whether it completed. Rejects if it does. */
export async function waitAtMost(work: Promise<unknown>, ms: number): Promise<boolean> {
  const over = new AbortController();
  try {
    return await Promise.race([work.then(() => true), pause(ms, over.signal).then(() => false)]);
  } finally {
    over.abort();
  }
}

const lookMs = 10;

/** Polls until `condition` holds, for at most `ms`. */
export async function waitUntil(condition: () => boolean, ms: number): Promise<void> {
  // oxlint-disable-next-line no-restricted-globals -- a wait with a limit is timed by the machine
  const endMs = performance.now() + ms;
  // oxlint-disable-next-line no-restricted-globals -- a wait with a limit is timed by the machine
  while (!condition() && performance.now() < endMs) await sleep(lookMs);
}

/** How long to wait after this many failures in a row: doubles each time, at most `maxMs`. */
export function backoffMs(
  failures: number,
  { firstMs, maxMs }: { firstMs: number; maxMs: number },
) {
  return Math.min(maxMs, firstMs * 2 ** (failures - 1));
}

/** Rests between the rounds of a loop. Others can wake it. */
export class WakeableRest {
  #isWoken = false;
  #wake: (() => void) | undefined;

  /** A round begins. A wake-up from now on ends the rest after it, even if it comes before that rest begins. */
  begin(): void {
    this.#isWoken = false;
  }

  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  /** Rests until it is woken, at most `ms`. */
  async rest(ms: number): Promise<void> {
    if (this.#isWoken || ms <= 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
    this.#wake = undefined;
  }
}

/**
 * Runs `work` now and then every `intervalMs`, skipping a time at which it still runs. Returns a function that stops
 * this and waits for work under way. `work` must not reject.
 */
export function startEvery(
  intervalMs: number,
  work: (signal: AbortSignal) => Promise<void>,
): () => Promise<void> {
  const stopping = new AbortController();
  let running: Promise<void> | null = null;
  const run = () => {
    running ??= work(stopping.signal).finally(() => (running = null));
  };
  const timer = setInterval(run, intervalMs);
  run();
  return async () => {
    clearInterval(timer);
    stopping.abort();
    await running;
  };
}
