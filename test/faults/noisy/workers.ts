import { setTimeout as delay } from 'node:timers/promises';

/** Repeats work in `count` workers until the signal aborts. Each worker gets its number. */
export async function work(
  count: number,
  signal: AbortSignal,
  once: (worker: number, turn: number) => Promise<unknown>,
): Promise<void> {
  const loop = async (worker: number) => {
    for (let turn = 0; !signal.aborted; turn++) {
      await once(worker, turn);
      // Instant answers must not keep this process from noticing its end.
      await new Promise(setImmediate);
    }
  };
  await Promise.all(Array.from({ length: count }, (_, worker) => loop(worker)));
}

/** Returns early when the signal aborts. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => undefined);

/** Resolves when the signal aborts. */
export const enough = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** Works on each of these items, `atOnce` of them at a time. */
export async function each<T>(
  things: Iterable<T>,
  atOnce: number,
  act: (thing: T) => Promise<unknown>,
): Promise<void> {
  const queue = [...things];
  const next = async () => {
    for (let thing = queue.shift(); thing !== undefined; thing = queue.shift()) await act(thing);
  };
  await Promise.all(Array.from({ length: atOnce }, next));
}
