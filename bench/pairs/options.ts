import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { numberOf } from '../options.ts';

export type PairsOptions = {
  /** Checkouts with their packages installed. */
  before: string;
  after: string;
  only: string[];
  pairs: number;
  /** Measured time of one turn. */
  seconds: number;
  /** Of load before the first pair, and of load at the start of each turn; neither is measured. */
  warmupSeconds: number;
  rampSeconds: number;
  /** Without load before each turn. */
  settleSeconds: number;
  devices: number;
  seed: number;
  /** Also before against before: what the machine alone makes of two that are the same. */
  self: boolean;
  usedLogSegments: number;
  /** The devices of `after` speak MQTT 5. */
  v5: boolean;
  jsonFile: string | null;
};

const project = new URL('../..', import.meta.url).pathname;

const usage = `npm run bench:pairs -- --before <checkout> [--after <checkout, this one>] [--self]
  [--only work[,work]] [--pairs 40] [--seconds 2] [--devices 1000] [--seed 1] [--v5] [--json file] [--smoke]`;

/** Reads the command line; `works` are the names that there are. Throws, with the usage, where it is wrong. */
export function readPairsOptions(argv: string[], works: string[]): PairsOptions {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const { values } = parseArgs({
    args: argv,
    options: {
      before: text,
      after: text,
      only: { ...text, multiple: true, default: [] },
      pairs: text,
      seconds: text,
      devices: text,
      seed: text,
      json: text,
      self: flag,
      v5: flag,
      smoke: flag,
    },
  });
  if (values.before === undefined) throw new Error(`--before: expected a directory.\n${usage}`);
  const only = values.only.flatMap((names) => names.split(','));
  const unknown = only.filter((name) => !works.some((work) => isMeant(work, [name])));
  if (unknown.length > 0)
    throw new Error(`No work ${unknown.join(', ')}; there are ${works.join(', ')}.\n${usage}`);
  const size = values.smoke ? smoke : full;
  const count = (given: string | undefined, otherwise: number) => numberOf(given, otherwise, usage);
  return {
    ...size,
    before: resolve(values.before),
    after: resolve(values.after ?? project),
    only,
    pairs: count(values.pairs, size.pairs),
    seconds: count(values.seconds, size.seconds),
    devices: count(values.devices, size.devices),
    seed: count(values.seed, 1),
    self: values.self,
    v5: values.v5,
    jsonFile: values.json === undefined ? null : resolve(values.json),
  };
}

/** `messages-1` means both `messages-1-plain` and `messages-1-profile`; no name means all works. */
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
