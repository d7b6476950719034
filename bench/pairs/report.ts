import type { Machine } from '../machine.ts';
import { clientLimit, formatNumber, mediansOf, type Metrics } from '../rounds.ts';
import type { Pair, SideName } from './alternate.ts';
import { medianInterval, type MedianInterval } from './interval.ts';
import type { PairsOptions } from './options.ts';
import type { Measure, Work } from './works.ts';

type Figure = Measure & {
  /** Medians of the turns. */
  before: number;
  after: number;
  /** Median of after / before over the pairs. */
  ratio: MedianInterval;
  /** null: there is no bound, or the interval is unknown. */
  holds: boolean | null;
};

export type WorkResult = {
  work: string;
  title: string;
  /** What `before` was compared with. Compared with itself, it shows the noise of the machine. */
  against: SideName;
  pairs: Pair[];
  figures: Figure[];
  /** Sides against which the load client used (nearly) all of its one thread, and so measured itself. */
  clientBound: SideName[];
};

export function summarize(work: Work, against: SideName, pairs: Pair[]): WorkResult {
  const { before, after } = { before: medians(pairs, 'before'), after: medians(pairs, 'after') };
  const figures = work.measures.map((measure): Figure => {
    const of = (metrics: Metrics) => metrics[measure.metric] ?? NaN;
    const ratio = medianInterval(pairs.map((pair) => of(pair.after) / of(pair.before)));
    return {
      ...measure,
      before: of(before),
      after: of(after),
      ratio,
      holds: holds(measure, ratio),
    };
  });
  const sides = { before, after };
  const clientBound = (['before', 'after'] as const).filter(
    (side) => (sides[side]['clientCores'] ?? NaN) > clientLimit,
  );
  return { work: work.name, title: work.title, against, pairs, figures, clientBound };
}

function medians(pairs: Pair[], side: SideName): Metrics {
  return mediansOf(pairs.map((pair) => pair[side]));
}

/** Uses the whole interval, because a median alone may go either way by chance. */
function holds({ bound }: Measure, { low, high }: MedianInterval): boolean | null {
  if (bound === null || Number.isNaN(low)) return null;
  return bound.reaches === 'below' ? low < bound.ratio : high > bound.ratio;
}

/** The table for people: machine, both versions, and the median ratio of each measure over the pairs. */
export function toMarkdown(machine: Machine, options: PairsOptions, results: WorkResult[]): string {
  const beside = results.filter(({ against }) => against === 'after');
  const itself = results.filter(({ against }) => against === 'before');
  return [
    ...Object.entries(machine).map(([name, value]) => `- ${name}: ${value}`),
    `- ${options.pairs} pair(s) of turns of ${options.seconds} s, order drawn with seed ${options.seed}; before and after are medians of the turns, the ratio is the median of the pairs'`,
    '',
    ...table(beside, 'after'),
    ...(itself.length === 0 ? [] : ['', 'Before against before:', '', ...table(itself, 'again')]),
  ].join('\n');
}

function table(results: WorkResult[], second: string): string[] {
  return [
    `| work | measured | before | ${second} | ratio | 95 % interval | to reach |`,
    '|---|---|--:|--:|--:|--:|--:|',
    ...results.flatMap((result) => result.figures.map((figure) => lineOf(result, figure))),
  ];
}

function lineOf({ title, clientBound }: WorkResult, figure: Figure): string {
  const { bound, holds, ratio } = figure;
  const doubts = [
    ...(holds === false ? ['missed'] : []),
    ...clientBound.map((side) => `the load client was full with ${side}`),
  ];
  const less = ratio.coverage < 0.95 ? ` (${Math.round(ratio.coverage * 100)} %)` : '';
  const cells = [
    title,
    figure.title,
    formatNumber(figure.before),
    formatNumber(figure.after),
    `${decimals(ratio.median)}${doubts.length > 0 ? ` (${doubts.join('; ')})` : ''}`,
    `${decimals(ratio.low)} to ${decimals(ratio.high)}${less}`,
    bound === null ? '' : `${bound.reaches} ${bound.ratio}`,
  ];
  return `| ${cells.join(' | ')} |`;
}

function decimals(value: number): string {
  return Number.isFinite(value) ? value.toFixed(3) : '–';
}
