/** Metrics of one turn, by name; names end in their units. */
export type Metrics = Record<string, number>;

export type Contender = {
  name: string;
  turn: () => Promise<Metrics>;
};

/** `ratio` is ours / beside of one metric; with 'at most', less is better. */
export type Comparison = {
  metric: string;
  ours: string;
  beside: string;
  bound: 'at least' | 'at most';
  target: number;
};

export type Verdict = Comparison & {
  ratio: number;
  /** The lowest and highest ratio of a single round, which shows how much other load affects `ratio`. */
  spread: [lowest: number, highest: number];
  reached: boolean;
  /** The contenders against which the load client used (nearly) all of its one thread. */
  clientBound: string[];
};

/** In cores. Above this the load client is the bottleneck. */
export const clientLimit = 0.9;

/** Runs all turns of a row in the order A B C, A B C, …, so that a slow minute affects all of them. */
export async function interleave(
  contenders: Contender[],
  rounds: number,
  tell: (line: string) => void,
): Promise<Map<string, Metrics[]>> {
  const measured = new Map(contenders.map(({ name }) => [name, [] as Metrics[]]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const { name, turn } of contenders) {
      const metrics = await turn();
      measured.get(name)?.push(metrics);
      tell(`  ${round}/${rounds} ${name}: ${describe(metrics)}`);
    }
  }
  return measured;
}

/** The median of each metric. */
export function mediansOf(rounds: Metrics[]): Metrics {
  const names = Object.keys(rounds[0] ?? {});
  return Object.fromEntries(names.map((name) => [name, median(rounds.map((r) => r[name] ?? NaN))]));
}

export function judge(comparison: Comparison, measured: Map<string, Metrics[]>): Verdict {
  const { metric, ours, beside, bound, target } = comparison;
  const of = (name: string, wanted = metric) => mediansOf(measured.get(name) ?? [])[wanted] ?? NaN;
  const ratio = of(ours) / of(beside);
  const others = measured.get(beside) ?? [];
  const single = (measured.get(ours) ?? []).map(
    (round, i) => (round[metric] ?? NaN) / (others[i]?.[metric] ?? NaN),
  );
  return {
    ...comparison,
    ratio,
    spread: [Math.min(...single), Math.max(...single)],
    reached: bound === 'at least' ? ratio >= target : ratio <= target,
    clientBound: [ours, beside].filter((name) => of(name, 'clientCores') > clientLimit),
  };
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const low = sorted[Math.ceil(middle) - 1] ?? NaN;
  const high = sorted[Math.floor(middle)] ?? NaN;
  return (low + high) / 2;
}

function describe(metrics: Metrics): string {
  return Object.entries(metrics)
    .map(([name, value]) => `${name} ${formatNumber(value)}`)
    .join(', ');
}

/** Three significant digits, thousands grouped. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return value.toLocaleString('en', { maximumSignificantDigits: 3 });
}
