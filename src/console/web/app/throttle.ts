/** Runs at once, and then at most once every `ms`: a burst ends with one more run. */
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

/** Several in a second are drawn at once. */
const everyMs = 200;

type Batch<T> = { add: (item: T) => void; flush: () => void };

/** Hands on what comes, at most five times in a second. */
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
