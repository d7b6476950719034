/** Resolves when it is the caller's turn to do a piece of work of a few milliseconds. */
export type TakeTurn = () => Promise<void>;

/**
 * One piece of work in each turn of the event loop, first come first served: however many streams are
 * written to, requests are served between two pieces.
 */
export function createSlices(): TakeTurn {
  const waiting: (() => void)[] = [];
  let scheduled = false;

  const schedule = (): void => {
    if (scheduled || waiting.length === 0) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      waiting.shift()?.();
      schedule();
    });
  };
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      schedule();
    });
}
