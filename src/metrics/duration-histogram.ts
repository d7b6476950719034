import type { Metric, Registry } from 'prom-client';

type DurationHistogramOptions = {
  name: string;
  help: string;
  /** Upper bounds in seconds, ascending. */
  buckets: number[];
  registers: Registry[];
};

/**
 * A histogram without labels, for what happens with every message. prom-client's own looks labels up and
 * makes the name of a property of a bucket's bound whenever it observes: several per cent of all that is
 * done with a message.
 */
export class DurationHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  readonly #bounds: number[];
  /** The last one: what is above all bounds. */
  readonly #counts: number[];
  #sum = 0;

  constructor({ name, help, buckets, registers }: DurationHistogramOptions) {
    this.name = name;
    this.help = help;
    this.#bounds = buckets;
    this.#counts = Array.from({ length: buckets.length + 1 }, () => 0);
    // What a registry asks of a metric is to be found here; its type lists more.
    for (const registry of registers) registry.registerMetric(this as unknown as Metric);
  }

  observe(seconds: number): void {
    let bucket = 0;
    while (seconds > (this.#bounds[bucket] ?? Infinity)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#sum += seconds;
  }

  /** As the registry writes it out. */
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
