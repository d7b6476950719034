/**
 * Does `work` now, and again so long after the start of the last time, or when that has ended. Gives what stops
 * it and waits for what is under way. `work` does not reject.
 */
export function startEvery(
  intervalMs: number,
  work: (signal: AbortSignal) => Promise<void>,
): () => Promise<void> {
  const stopping = new AbortController();
  let running: Promise<void> | null = null;
  const run = () => {
    running ??= work(stopping.signal).finally(() => (running = null));
  };
  const timer = setInterval(run, intervalMs);
  run();
  return async () => {
    clearInterval(timer);
    stopping.abort();
    await running;
  };
}
