import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Look-ups by key that share queries. The first query starts at once. Keys requested meanwhile wait and go together, at
 * most `maxKeys` per query and with at least `pauseMs` between two queries. So the number of queries stays bounded
 * however many look-ups there are, even of keys that do not exist.
 */
type Coalesced<K, V> = {
  /** The value as of now, never from a query that was already under way; null if there is none. */
  find(key: K): Promise<V | null>;
};

type CoalesceOptions<K, V> = {
  /** Values by key. Omits keys without a value. */
  load: (keys: K[]) => Promise<Map<K, V>>;
  maxKeys?: number;
  /** Queries under way at once. */
  parallel?: number;
  pauseMs?: number;
};

type Waiting<V> = PromiseWithResolvers<V | null>;

export function coalesce<K, V>(options: CoalesceOptions<K, V>): Coalesced<K, V> {
  const { load, maxKeys = 1_000, parallel = 1, pauseMs = 0 } = options;
  let waiting = new Map<K, Waiting<V>>();
  let running = 0;
  let scheduled = false;
  // A query serves many callers, so it runs in the async context of none of them.
  const asNobody = AsyncLocalStorage.snapshot();

  function find(key: K): Promise<V | null> {
    const known = waiting.get(key);
    if (known) return known.promise;
    const asked = Promise.withResolvers<V | null>();
    waiting.set(key, asked);
    schedule();
    return asked.promise;
  }

  /** Look-ups from one turn of the event loop share a query. */
  function schedule(): void {
    if (scheduled || running >= parallel) return;
    scheduled = true;
    asNobody(() =>
      setImmediate(() => {
        scheduled = false;
        start();
      }),
    );
  }

  function start(): void {
    if (waiting.size === 0 || running >= parallel) return;
    running += 1;
    void run();
  }

  async function run(): Promise<void> {
    const batch = take();
    try {
      const found = await load([...batch.keys()]);
      for (const [key, { resolve }] of batch) resolve(found.get(key) ?? null);
    } catch (error) {
      for (const { reject } of batch.values()) reject(error);
    }
    if (pauseMs > 0) await sleep(pauseMs, undefined, { ref: false });
    running -= 1;
    start();
  }

  function take(): Map<K, Waiting<V>> {
    const batch = new Map([...waiting].slice(0, maxKeys));
    if (batch.size === waiting.size) waiting = new Map();
    else for (const key of batch.keys()) waiting.delete(key);
    return batch;
  }

  return { find };
}
