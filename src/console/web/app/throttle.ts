/** Runs at once, then at most once every `ms`; after a burst it runs once more. */
export function throttle(run: () => void, ms: number): () => void {
  let isResting = false;
  let isAsked = false;
  const call = () => {
    if (isResting) {
      isAsked = true;
      return;
    }
    isResting = true;
    run();
    setTimeout(() => {
      isResting = false;
      if (isAsked) {
        isAsked = false;
        call();
      }
    }, ms);
  };
  return call;
}

/** Messages of the same moment are drawn together. */
const everyMs = 200;

type Batch<T> = { add: (item: T) => void; flush: () => void };

/** Passes items on in batches, at most five times a second. */
export function createBatch<T>(give: (items: readonly T[]) => void): Batch<T> {
  let items: T[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const given = items;
    items = [];
    if (given.length > 0) give(given);
  };
  return {
    flush,
    add(item) {
      items.push(item);
      timer ??= setTimeout(flush, everyMs);
    },
  };
}
