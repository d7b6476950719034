import { setTimeout as sleep } from 'node:timers/promises';

/** Waits `ms`, or until `stopping` aborts. Never rejects. */
export async function pause(ms: number, stopping: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stopping }).catch(() => undefined);
}

/** Waits for `work`, and no longer than `ms`; says whether it came to its end. Rejects as it does. */
export async function waitAtMost(work: Promise<unknown>, ms: number): Promise<boolean> {
  const over = new AbortController();
  try {
    return await Promise.race([work.then(() => true), pause(ms, over.signal).then(() => false)]);
  } finally {
    over.abort();
  }
}

const lookMs = 10;

/** Looks again and again until `condition` holds, for `ms` at most. */
export async function waitUntil(condition: () => boolean, ms: number): Promise<void> {
  // oxlint-disable-next-line no-restricted-globals -- a wait with a limit is timed by the machine
  const endMs = performance.now() + ms;
  // oxlint-disable-next-line no-restricted-globals -- a wait with a limit is timed by the machine
  while (!condition() && performance.now() < endMs) await sleep(lookMs);
}

/** How long to wait after so many failures in a row: twice as long each time, `maxMs` at most. */
export function backoffMs(
  failures: number,
  { firstMs, maxMs }: { firstMs: number; maxMs: number },
) {
  return Math.min(maxMs, firstMs * 2 ** (failures - 1));
}

/** Rests between the turns of a loop that others can wake. */
export class WakeableRest {
  #isWoken = false;
  #wake: (() => void) | undefined;

  /** A turn begins: who wakes from now on ends the rest behind it, also before that begins. */
  begin(): void {
    this.#isWoken = false;
  }

  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  /** Until it is woken, `ms` at most. */
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
 * Does `work` now, and again so long after the start of the last time, or when that has ended. Gives what stops
 * it and waits for what is under way. `work` does not reject.
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
