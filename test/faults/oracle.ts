import { readOptionsOrExit, UsageError } from '../../src/cli/command-line.ts';
import { numberOf } from '../../bench/options.ts';
import { findTimescaleBinDir } from '../support/cluster.ts';
import type { Fault } from './fault.ts';
import { faults } from './faults.ts';
import { diskFull, mountSmallDisk } from './kinds/disk-full.ts';
import { kinds } from './noisy/kinds.ts';
import { noisyNeighbour } from './noisy/noisy-neighbour.ts';
import { runNoisy } from './noisy/run-noisy.ts';
import { runFault } from './run-fault.ts';
import type { Outcome } from './run-fault.ts';
import { faultsOf } from './verdict.ts';
import { startWorld } from './world.ts';

const usage = `Sends measurements, injects faults, and checks that nothing acknowledged was lost.

Usage:
  npm run oracle -- [--fault NAME]... [--times N] [--seconds N] [--devices N] [--rate N] [--plain]
  npm run oracle -- --fault noisy-neighbour --kind NAME|all|list...

  --fault    one of: ${faults.map(({ name }) => name).join(', ')};
             may be repeated (default: all but noisy-neighbour)
  --kind     what one account does to the others, for the fault noisy-neighbour;
             "all" runs all kinds one after the other, "list" prints them
  --times    how often to inject each fault (default: depends on the fault)
  --seconds  how long each fault lasts (default: depends on the fault)
  --devices  devices under load (default 500; with noisy-neighbour 200)
  --rate     messages a second of all devices together (default 3000; with noisy-neighbour 500)
  --plain    use PostgreSQL without TimescaleDB, even if this machine has TimescaleDB
`;

const text = { type: 'string' } as const;
const names = { type: 'string', multiple: true } as const;
const flags = {
  fault: names,
  kind: names,
  times: text,
  seconds: text,
  devices: text,
  rate: text,
  plain: { type: 'boolean', default: false },
} as const;
const noisyName = 'noisy-neighbour';

const options = readOptionsOrExit(usage, flags, (values) => ({
  lists: values.kind?.includes('list') ?? false,
  chosen: choose(values.fault, values.kind),
  times: givenOf('times', values.times),
  seconds: givenOf('seconds', values.seconds),
  devices: givenOf('devices', values.devices),
  rate: givenOf('rate', values.rate),
  plain: values.plain,
}));
const timescaledb = !options.plain && findTimescaleBinDir() !== null;

if (options.lists) for (const { name, says } of kinds) console.log(`${name.padEnd(24)}${says}`);
else process.exitCode = await runAll(options.chosen);

function givenOf(name: string, given: string | undefined): number | undefined {
  return given === undefined ? undefined : numberOf(name, given, 1);
}

/** Throws `UsageError`. */
function choose(names: string[] | undefined, kindNames: string[] = []): Fault[] {
  if (names?.includes(noisyName)) return chooseNoisy(kindNames);
  const unknown = names?.find((name) => faults.every((fault) => fault.name !== name));
  if (unknown === undefined) return faults.filter(({ name }) => names?.includes(name) ?? true);
  throw new UsageError(`--fault: unknown fault "${unknown}".`);
}

function chooseNoisy(names: string[]): Fault[] {
  const known = (name: string) => kinds.some((kind) => kind.name === name);
  const unknown = names.find((name) => name !== 'all' && name !== 'list' && !known(name));
  if (unknown !== undefined) throw new UsageError(`--kind: unknown kind "${unknown}".`);
  if (names.length === 0) throw new UsageError(`${noisyName} needs --kind NAME, all or list.`);
  const chosen = kinds.filter(({ name }) => names.includes('all') || names.includes(name));
  return chosen.map((kind) => noisyNeighbour(kind));
}

async function runAll(chosen: Fault[]): Promise<number> {
  const outcomes: Outcome[] = [];
  let broken = 0;
  for (const [index, fault] of chosen.entries()) {
    process.stderr.write(`[${index + 1}/${chosen.length}] ${fault.name}: ${fault.promise}\n`);
    const lacking = fault.lacks?.() ?? null;
    if (lacking !== null) {
      process.stderr.write(`    not run: this machine lacks ${lacking}\n`);
      continue;
    }
    try {
      const outcome = await runOne(fault);
      outcomes.push(outcome);
      const wrong = Object.values(faultsOf(outcome.verdict)).some((count) => count > 0);
      const broke = fault.breaks?.(outcome.observations) ?? [];
      for (const promise of broke) process.stderr.write(`    broken: ${promise}\n`);
      if (wrong || broke.length > 0 || exceedsLimits(fault, outcome)) broken += 1;
    } catch (error) {
      broken += 1;
      console.error(error);
    }
  }
  console.table(Object.fromEntries(outcomes.map(({ fault, verdict }) => [fault, verdict])));
  console.table(
    Object.fromEntries(outcomes.map(({ fault, observations }) => [fault, observations])),
  );
  console.log(
    broken === 0 ? 'Every promise held.' : `${broken} of ${chosen.length} faults broke a promise.`,
  );
  return broken === 0 ? 0 : 1;
}

function exceedsLimits({ limits = {} }: Fault, { observations }: Outcome): boolean {
  return Object.entries(limits).some(([name, most]) => (observations[name] ?? 0) > most);
}

async function runOne(fault: Fault): Promise<Outcome> {
  const kind = kinds.find(({ name }) => fault.name === `${noisyName} ${name}`);
  if (kind)
    return runNoisy(kind, {
      seconds: options.seconds ?? fault.long.awaySeconds,
      devices: options.devices ?? 200,
      rate: options.rate ?? 500,
      timescaledb,
      onReport: (report) => void process.stderr.write(`    ${report}\n`),
    });
  const disk = fault === diskFull ? mountSmallDisk() : null;
  try {
    const world = await startWorld({
      devices: options.devices ?? 500,
      rate: options.rate ?? 3_000,
      timescaledb,
      watch: true,
      ...fault.world,
      ...(disk ? { databaseDir: disk.databaseDir } : {}),
    });
    const progress = setInterval(() => {
      const { sent, acknowledged, online } = world.load.counts();
      process.stderr.write(`\r    sent ${sent}, acknowledged ${acknowledged}, online ${online}   `);
    }, 1_000);
    try {
      return await runFault(world, fault, {
        times: options.times ?? fault.long.times,
        awaySeconds: options.seconds ?? fault.long.awaySeconds,
      });
    } finally {
      clearInterval(progress);
      process.stderr.write('\n');
      await world.close();
    }
  } finally {
    disk?.unmount();
  }
}
