import { readOptionsOrExit, UsageError } from '../src/cli/command-line.ts';

/** Sizes of a run. Full by default; `--smoke` only checks that every row works. */
export type BenchOptions = {
  only: string[];
  rounds: number;
  /** Measured time of one turn, and the warm-up before it. */
  seconds: number;
  warmupSeconds: number;
  devices: number;
  pipelinedDevices: number;
  idleDevices: number;
  storedEvents: number;
  historyDays: number;
  /** How long an idle process has to release memory. */
  settleSeconds: number;
  /** WAL segments to recycle: enough for the first rows, whose p99 is reported. */
  usedLogSegments: number;
  outDir: string | null;
};

const usageOf = (rowNames: string[]) => `Usage: npm run bench -- [options]

Compares the service with what you would otherwise run for the same work. All rows take about an hour.

  --only ROW[,ROW]  Measure only these rows: ${rowNames.join(', ')}.
  --rounds N        How often to measure each row (default 5).
  --seconds S       How long each measurement takes (default 10).
  --events N        Stored events that the row "events" reads from (default 10000000).
  --out DIR         Where to write the table and the raw figures (default bench/results).
  --smoke           Check only that every row works, in small and short runs; writes nothing
                    without --out.
  --help            Print this text.`;

const flags = {
  only: { type: 'string', multiple: true, default: [] as string[] },
  rounds: { type: 'string' },
  seconds: { type: 'string' },
  events: { type: 'string' },
  out: { type: 'string' },
  smoke: { type: 'boolean', default: false },
} as const;

/** Reads the command line. If it is wrong, prints the usage and ends the process. */
export function readOptions(rowNames: string[]): BenchOptions {
  return readOptionsOrExit(usageOf(rowNames), flags, (values) => {
    const only = values.only.flatMap((names) => names.split(','));
    const unknown = only.filter((name) => !rowNames.includes(name));
    if (unknown.length > 0) throw new UsageError(`--only: unknown row ${unknown.join(', ')}.`);
    const size = values.smoke ? smoke : full;
    return {
      ...size,
      only,
      rounds: numberOf('rounds', values.rounds, size.rounds),
      seconds: numberOf('seconds', values.seconds, size.seconds),
      storedEvents: numberOf('events', values.events, size.storedEvents),
      outDir: values.out ?? size.outDir,
    };
  });
}

/** The positive number of option `name`. Throws `UsageError` if it is none. */
export function numberOf(name: string, text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (value > 0) return value;
  throw new UsageError(`--${name}: expected a number above 0, got "${text}".`);
}

const full = {
  rounds: 5,
  seconds: 10,
  warmupSeconds: 3,
  devices: 1_000,
  pipelinedDevices: 50,
  idleDevices: 10_000,
  storedEvents: 10_000_000,
  historyDays: 300,
  settleSeconds: 15,
  usedLogSegments: 200,
  outDir: new URL('./results', import.meta.url).pathname,
};

const smoke = {
  rounds: 1,
  seconds: 0.3,
  warmupSeconds: 0.1,
  devices: 60,
  pipelinedDevices: 10,
  idleDevices: 100,
  storedEvents: 2_000,
  historyDays: 20,
  settleSeconds: 0.1,
  usedLogSegments: 2,
  outDir: null,
};
