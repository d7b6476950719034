/**
 * Joins single look-ups into batches. A key waits while earlier batches are under way (`parallel` of
 * them at most) and then shares one query with all others that waited. Every query begins after the
 * call it answers, so an answer is never older than the call: this is no cache.
 */
export function batchLookups<V>(
  load: (keys: string[]) => Promise<Map<string, V>>,
  { parallel = 2, maxKeys = 500 } = {},
): (key: string) => Promise<V | null> {
  let waiting = new Map<string, Waiter<V>[]>();
  let running = 0;

  const run = async (batch: Map<string, Waiter<V>[]>): Promise<void> => {
    try {
      const found = await load([...batch.keys()]);
      for (const [key, waiters] of batch) {
        for (const { resolve } of waiters) resolve(found.get(key) ?? null);
      }
    } catch (error) {
      for (const waiters of batch.values()) for (const { reject } of waiters) reject(error);
    } finally {
      running -= 1;
      start();
    }
  };

  const start = (): void => {
    while (running < parallel && waiting.size > 0) {
      const batch = new Map([...waiting].slice(0, maxKeys));
      waiting = waiting.size > maxKeys ? new Map([...waiting].slice(maxKeys)) : new Map();
      running += 1;
      void run(batch);
    }
  };

  return (key) =>
    new Promise((resolve, reject) => {
      const waiters = waiting.get(key);
      if (waiters) return waiters.push({ resolve, reject });
      waiting.set(key, [{ resolve, reject }]);
      // One turn later, so that what arrives in the same turn travels together.
      if (waiting.size === 1) setImmediate(start);
    });
}

type Waiter<V> = { resolve: (value: V | null) => void; reject: (error: unknown) => void };
