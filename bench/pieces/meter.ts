import { PerformanceObserver } from 'node:perf_hooks';

type Span = { startMs: number; endMs: number; cpuMs: number };

/**
 * Measures what the event loop does between two of its returns, in processor time of this thread, garbage
 * collection aside. Its clock runs once in each turn of the loop, so that a turn of several pieces counts
 * as one: what it says is never too little.
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
      // The many turns that do nothing are no matter.
      if (cpuMs - last.cpuMs > 0.2) {
        this.#spans.push({ startMs: last.startMs, endMs: startMs, cpuMs: cpuMs - last.cpuMs });
      }
      last = { startMs, cpuMs };
      this.#timer = setImmediate(tick);
    };
    this.#timer = setImmediate(tick);
  }

  /** The longest piece since the last time it was asked, in ms. */
  async takeLongest(): Promise<number> {
    // The collector's pauses are told in a later turn.
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

/** The first call brings the kernel's account up to date, which otherwise moves in steps of 4 ms. */
function threadCpuMs(): number {
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
