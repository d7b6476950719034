import { PerformanceObserver } from 'node:perf_hooks';

type Span = { startMs: number; endMs: number; cpuMs: number };

/**
 * Measures the work between two returns to the event loop, in processor time of this thread without garbage collection.
 * Its clock runs once per turn of the loop, so a turn of several pieces counts as one: the result is never too small.
 */
export class PieceMeter {
  readonly #collected: { startMs: number; endMs: number }[] = [];
  readonly #observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) {
      this.#collected.push({ startMs: startTime, endMs: startTime + duration });
    }
  });
  #spans: Span[] = [];
  #timer: NodeJS.Immediate | null = null;

  start(): void {
    this.#observer.observe({ entryTypes: ['gc'] });
    let last = { startMs: performance.now(), cpuMs: threadCpuMs() };
    const tick = () => {
      const [cpuMs, startMs] = [threadCpuMs(), performance.now()];
      // Ignores the many turns that do nothing.
      if (cpuMs - last.cpuMs > 0.2) {
        this.#spans.push({ startMs: last.startMs, endMs: startMs, cpuMs: cpuMs - last.cpuMs });
      }
      last = { startMs, cpuMs };
      this.#timer = setImmediate(tick);
    };
    this.#timer = setImmediate(tick);
  }

  /** The longest piece since the previous call, in ms. */
  async takeLongest(): Promise<number> {
    // The collector's pauses are reported in a later turn.
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
    const spans = this.#spans;
    this.#spans = [];
    const longest = Math.max(0, ...spans.map((span) => span.cpuMs - this.#collectedIn(span)));
    this.#collected.length = 0;
    return longest;
  }

  stop(): void {
    if (this.#timer) clearImmediate(this.#timer);
    this.#observer.disconnect();
  }

  #collectedIn({ startMs, endMs }: Span): number {
    return this.#collected
      .filter((pause) => pause.startMs >= startMs && pause.endMs <= endMs)
      .reduce((sum, pause) => sum + pause.endMs - pause.startMs, 0);
  }
}

/** The first call updates the kernel's accounting, which otherwise moves in steps of 4 ms. */
function threadCpuMs(): number {
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
