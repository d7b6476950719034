import type { Metric, Registry } from 'prom-client';

type DurationHistogramOptions = {
  name: string;
  help: string;
  /** Upper bounds in seconds, ascending. */
  buckets: number[];
  registers: Registry[];
};

/**
 * A histogram without labels, for things that happen with every message. On every observation prom-client's own looks
 * up labels and builds a property name from a bucket's bound, which is several per cent of all work for a message.
 */
export class DurationHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  readonly #bounds: number[];
  /** The last one counts values above all bounds. */
  readonly #counts: number[];
  #sum = 0;

  constructor({ name, help, buckets, registers }: DurationHistogramOptions) {
    this.name = name;
    this.help = help;
    this.#bounds = buckets;
    this.#counts = Array.from({ length: buckets.length + 1 }, () => 0);
    // This class has everything that a registry uses of a metric, although its type lists more.
    for (const registry of registers) registry.registerMetric(this as unknown as Metric);
  }

  observe(seconds: number): void {
    let bucket = 0;
    while (seconds > (this.#bounds[bucket] ?? Infinity)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#sum += seconds;
  }

  /** In the form that the registry writes. */
  async get() {
    const { name, help, type, aggregator } = this;
    let count = 0;
    const buckets = this.#counts.map((inBucket, index) => {
      count += inBucket;
      const labels = { le: this.#bounds[index] ?? '+Inf' };
      return { metricName: `${name}_bucket`, labels, value: count };
    });
    const totals = [
      { metricName: `${name}_sum`, labels: {}, value: this.#sum },
      { metricName: `${name}_count`, labels: {}, value: count },
    ];
    return { name, help, type, aggregator, values: [...buckets, ...totals] };
  }

  reset(): void {
    this.#counts.fill(0);
    this.#sum = 0;
  }
}
