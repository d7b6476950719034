import { parseArgs } from 'node:util';

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
  /** How long an idle process has to give memory back. */
  settleSeconds: number;
  /** WAL segments to recycle: enough for the first rows, whose p99 is reported. */
  usedLogSegments: number;
  outDir: string | null;
};

const usage = `npm run bench -- [--only row[,row]] [--rounds 5] [--seconds 10] [--smoke] [--out dir]`;

export function readOptions(argv: string[], rowNames: string[]): BenchOptions {
  const { values } = parseArgs({
    args: argv,
    options: {
      only: { type: 'string', multiple: true, default: [] },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      events: { type: 'string' },
      out: { type: 'string' },
      smoke: { type: 'boolean', default: false },
    },
  });
  const only = values.only.flatMap((names) => names.split(','));
  const unknown = only.filter((name) => !rowNames.includes(name));
  if (unknown.length > 0)
    throw new Error(`No row ${unknown.join(', ')}; there are ${rowNames.join(', ')}.\n${usage}`);
  const size = values.smoke ? smoke : full;
  return {
    ...size,
    only,
    rounds: numberOf(values.rounds, size.rounds, usage),
    seconds: numberOf(values.seconds, size.seconds, usage),
    storedEvents: numberOf(values.events, size.storedEvents, usage),
    outDir: values.out ?? size.outDir,
  };
}

/** A positive number from the command line. Throws with the usage where it is not one. */
export function numberOf(text: string | undefined, otherwise: number, usage: string): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!(value > 0)) throw new Error(`Expected a positive number, got ${text}.\n${usage}`);
  return value;
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
