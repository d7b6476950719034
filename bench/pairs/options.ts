import { resolve } from 'node:path';
import { readOptionsOrExit, UsageError } from '../../src/cli/command-line.ts';
import { numberOf } from '../options.ts';

export type PairsOptions = {
  /** Checkouts with their packages installed. */
  before: string;
  after: string;
  only: string[];
  pairs: number;
  /** Measured time of one turn. */
  seconds: number;
  /** Load before the first pair, and load at the start of each turn; neither is measured. */
  warmupSeconds: number;
  rampSeconds: number;
  /** A pause without load before each turn. */
  settleSeconds: number;
  devices: number;
  seed: number;
  /** Also measure before against before, which shows the noise of the machine. */
  self: boolean;
  usedLogSegments: number;
  /** The devices of `after` use MQTT 5. */
  v5: boolean;
  jsonFile: string | null;
};

const project = new URL('../..', import.meta.url).pathname;

const usageOf = (works: string[]) => `Usage: npm run bench:pairs -- --before CHECKOUT [options]

Shows whether one version of the service is slower than another. Both run at once, and take turns under
load. All workloads together take about 40 minutes. See docs/performance.md.

  --before CHECKOUT  A checkout with its packages installed.
  --after CHECKOUT   The checkout to compare it with (default: this one).
  --self             Also compare --before with itself, which shows the noise of the machine.
  --only NAME[,NAME] Run only these workloads, or those whose names begin with one of these:
                     ${works.join(', ')}.
  --pairs N          How often to measure both (default 40).
  --seconds S        How long each measurement takes (default 2).
  --devices N        Devices connected to each version (default 1000).
  --seed N           Seed for the order in which the two take turns (default 1).
  --v5               The devices of --after speak MQTT 5.
  --json FILE        Where to write the raw figures.
  --smoke            Check only that every workload runs, in small and short runs.
  --help             Print this text.`;

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;
const flags = {
  before: text,
  after: text,
  only: { ...text, multiple: true, default: [] as string[] },
  pairs: text,
  seconds: text,
  devices: text,
  seed: text,
  json: text,
  self: flag,
  v5: flag,
  smoke: flag,
} as const;

/** Reads the command line. If it is wrong, prints the usage and ends the process. `works` are the known names. */
export function readPairsOptions(works: string[]): PairsOptions {
  return readOptionsOrExit(usageOf(works), flags, (values) => {
    if (values.before === undefined)
      throw new UsageError('--before: expected the directory of a checkout.');
    const only = values.only.flatMap((names) => names.split(','));
    const unknown = only.filter((name) => !works.some((work) => isMeant(work, [name])));
    if (unknown.length > 0) throw new UsageError(`--only: unknown workload ${unknown.join(', ')}.`);
    const size = values.smoke ? smoke : full;
    return {
      ...size,
      before: resolve(values.before),
      after: resolve(values.after ?? project),
      only,
      pairs: numberOf('pairs', values.pairs, size.pairs),
      seconds: numberOf('seconds', values.seconds, size.seconds),
      devices: numberOf('devices', values.devices, size.devices),
      seed: numberOf('seed', values.seed, 1),
      self: values.self,
      v5: values.v5,
      jsonFile: values.json === undefined ? null : resolve(values.json),
    };
  });
}

/** `messages-1` means both `messages-1-plain` and `messages-1-profile`. No name means all workloads. */
export function isMeant(work: string, names: string[]): boolean {
  return names.length === 0 || names.some((name) => work === name || work.startsWith(`${name}-`));
}

const full = {
  pairs: 40,
  seconds: 2,
  warmupSeconds: 3,
  rampSeconds: 0.25,
  settleSeconds: 0.25,
  devices: 1_000,
  usedLogSegments: 200,
};

const smoke = {
  pairs: 2,
  seconds: 0.3,
  warmupSeconds: 0.1,
  rampSeconds: 0.05,
  settleSeconds: 0.05,
  devices: 60,
  usedLogSegments: 2,
};
