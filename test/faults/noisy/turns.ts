/** Resolves when it is the caller's turn, with what ends it. */
export type Turn = () => Promise<() => void>;

/** One turn at a time, in the order in which they are asked for. */
export function createTurns(): Turn {
  let last: Promise<void> = Promise.resolve();
  return async () => {
    const before = last;
    const { promise, resolve } = Promise.withResolvers<void>();
    last = promise;
    await before;
    return resolve;
  };
}
