/**
 * Does `work` for every item, at most `limit` at a time, and starts no further one once the signal
 * is aborted. Results stand in the order of the items; those that were not begun are left out.
 */
export async function forEachBounded<T, R>(
  items: readonly T[],
  limit: number,
  signal: AbortSignal,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: { index: number; value: R }[] = [];
  const queue = items.entries();
  let failed = false;
  const worker = async () => {
    for (const [index, item] of queue) {
      if (failed || signal.aborted) return;
      try {
        results.push({ index, value: await work(item) });
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results.toSorted((a, b) => a.index - b.index).map(({ value }) => value);
}
