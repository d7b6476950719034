/** Resolves in the caller's turn, with a function that ends it. */
export type Turn = () => Promise<() => void>;

/** One turn at a time, in the order of the calls. */
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
