import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RowResult } from './bench-context.ts';
import type { Machine } from './machine.ts';
import type { BenchOptions } from './options.ts';
import { formatNumber, judge, mediansOf, type Metrics } from './rounds.ts';

const titles: [metric: string, title: string][] = [
  ['acksPerSecond', 'acks/s'],
  ['rowsPerSecond', 'rows stored/s'],
  ['requestsPerSecond', 'requests/s'],
  ['connectsPerSecond', 'connects/s'],
  ['bytesPerConnection', 'bytes a connection'],
  ['p50Ms', 'p50 ms'],
  ['p99Ms', 'p99 ms'],
  ['clientCores', 'client cores'],
  ['serverCores', 'server cores'],
  ['databaseCores', 'database cores'],
];

/** The table: machine, what was compared, and the medians of every row. */
export function toMarkdown(machine: Machine, options: BenchOptions, results: RowResult[]): string {
  return [
    ...Object.entries(machine).map(([name, value]) => `- ${name}: ${value}`),
    `- medians of ${options.rounds} interleaved round(s), ${options.seconds} s each; load client, servers and database share the cores`,
    '',
    '| work | measured | beside | ours | theirs | ratio | in single rounds | to reach |',
    '|---|---|---|--:|--:|--:|--:|--:|',
    ...results.flatMap(comparisonLines),
    '',
    ...results.flatMap(detailLines),
  ].join('\n');
}

function comparisonLines({ work, rounds, comparisons }: RowResult): string[] {
  return comparisons.map((comparison) => {
    const { ratio, spread, reached, clientBound } = judge(comparison, rounds);
    const doubts = [
      ...(reached ? [] : ['missed']),
      ...clientBound.map((name) => `the load client was full with ${name}`),
    ];
    const { metric, beside, bound, target } = comparison;
    const value = (name: string) => formatNumber(mediansOf(rounds.get(name) ?? [])[metric] ?? NaN);
    const cells = [
      work,
      titleOf(metric),
      beside,
      value(comparison.ours),
      value(beside),
      `${ratio.toFixed(2)}${doubts.length > 0 ? ` (${doubts.join('; ')})` : ''}`,
      spread.map((each) => each.toFixed(2)).join(' to '),
      `${bound} ${target}`,
    ];
    return `| ${cells.join(' | ')} |`;
  });
}

function detailLines({ work, rounds, notes }: RowResult): string[] {
  const medians = [...rounds].map(([name, each]) => [name, mediansOf(each)] as const);
  const columns = titles.filter(([metric]) => medians.some(([, each]) => metric in each));
  const cell = (each: Metrics, metric: string) =>
    metric in each ? formatNumber(each[metric] ?? NaN) : '';
  return [
    `### ${work}`,
    '',
    ...notes.map((note) => `${note}\n`),
    `| | ${columns.map(([, title]) => title).join(' | ')} |`,
    `|---|${columns.map(() => '--:').join('|')}|`,
    ...medians.map(
      ([name, each]) =>
        `| ${name} | ${columns.map(([metric]) => cell(each, metric)).join(' | ')} |`,
    ),
    '',
  ];
}

function titleOf(metric: string): string {
  return titles.find(([name]) => name === metric)?.[1] ?? metric;
}

/** Writes all measurements, round by round, and the table, to files named by date. */
export async function writeResults(
  dir: string,
  machine: Machine,
  options: BenchOptions,
  results: RowResult[],
): Promise<string> {
  await mkdir(dir, { recursive: true });
  const rows = results.map((result) => ({ ...result, rounds: Object.fromEntries(result.rounds) }));
  const raw = JSON.stringify({ machine, options, rows }, null, 1);
  const name = results.map(({ row }) => row).join('-');
  const base = join(dir, options.only.length === 0 ? 'latest' : name);
  await writeFile(`${base}.json`, `${raw}\n`);
  await writeFile(`${base}.md`, `${toMarkdown(machine, options, results)}\n`);
  return `${base}.md`;
}
