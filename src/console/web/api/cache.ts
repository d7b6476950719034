import { signal, type Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** What is known about a query: the last answer stays while it is repeated. */
type Known<T> = { data?: T; error?: unknown };
export type Query<T> = Known<T> & { reload: () => void };

const cache = new Map<string, Signal<Known<unknown>>>();
const loaders = new Map<string, () => void>();

function entry<T>(key: string): Signal<Known<T>> {
  let found = cache.get(key);
  if (!found) {
    if (cache.size >= most) forgetOldest();
    cache.set(key, (found = signal<Known<unknown>>({})));
  }
  return found as Signal<Known<T>>;
}

/** Each zoom level is a query of its own. */
const most = 100;

function forgetOldest(): void {
  for (const key of cache.keys()) {
    if (loaders.has(key)) continue;
    cache.delete(key);
    if (cache.size < most) return;
  }
}

/** Clears everything: somebody else has signed in, or nobody is signed in. */
export function forgetAll(): void {
  cache.clear();
}

/** Updates a cached answer with something that was streamed since. */
export function revise<T>(key: string, change: (data: T) => T): void {
  const state = entry<T>(key);
  const { data } = state.peek();
  if (data === undefined) return;
  const changed = change(data);
  if (changed !== data) state.value = { ...state.peek(), data: changed };
}

/** The same for all queries whose key begins with `prefix`. */
export function reviseAll<T>(prefix: string, change: (data: T) => T): void {
  for (const key of cache.keys()) if (key.startsWith(prefix)) revise(key, change);
}

/** Repeats the queries on the screen whose key begins with `prefix`. */
export function reload(prefix: string): void {
  for (const [key, load] of loaders) if (key.startsWith(prefix)) load();
}

/**
 * Runs a query when the component mounts, and again every `everyMs` while the page is visible. `key` identifies the
 * query.
 */
export function useQuery<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  { everyMs = 0 } = {},
): Query<T> {
  const state = entry<T>(key);
  useEffect(() => {
    const gone = new AbortController();
    let isAsking = false;
    let isOutdated = false;
    let retry: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      if (isAsking) return;
      isAsking = true;
      isOutdated = false;
      try {
        const data = await load(gone.signal);
        if (!gone.signal.aborted && !isOutdated) state.value = { data };
      } catch (error) {
        if (gone.signal.aborted) return;
        state.value = { ...state.peek(), error };
        // The service did not answer at all, so it may soon: a person should not have to ask.
        if (error instanceof TypeError) retry = setTimeout(onVisible, retryMs);
      } finally {
        isAsking = false;
        if (isOutdated && !gone.signal.aborted) void ask();
      }
    };
    // A request under way may have begun before the change that this is about.
    const again = () => {
      isOutdated = true;
      void ask();
    };
    loaders.set(key, again);
    void ask();
    const onVisible = () => document.visibilityState === 'visible' && void ask();
    addEventListener('online', onVisible);
    const timer = everyMs > 0 ? setInterval(onVisible, everyMs) : undefined;
    document.addEventListener('visibilitychange', onVisible);
    return () => {
      gone.abort();
      clearInterval(timer);
      clearTimeout(retry);
      removeEventListener('online', onVisible);
      document.removeEventListener('visibilitychange', onVisible);
      if (loaders.get(key) === again) loaders.delete(key);
    };
  }, [key]);
  const { data, error } = state.value;
  return { data, error, reload: () => loaders.get(key)?.() };
}

const retryMs = 5_000;

/** What another component's query returned; nothing until it was answered. */
export function useKnown(key: string): unknown {
  return entry(key).value.data;
}
