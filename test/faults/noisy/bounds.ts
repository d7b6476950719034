import type { Observations } from '../fault.ts';
import type { Phase } from './meter.ts';
import type { NoiseReport } from './noise-process.ts';

/** The figures of the noise, and what the others noticed of it. */
export type Seen = {
  quiet: Phase;
  noisy: Phase;
  noise: NoiseReport;
  /** How much the tables grew, without the others' own growth. */
  grownBytes: number;
  /** What the account's quotas let it store, if that is more than what it sends. */
  quotaBytes: number;
  /** How much memory the account may take by what it has open, MB, if that is more than `usualMemoryMb`. */
  memoryMb?: number | undefined;
  /** How much more memory is taken 30 s after the noise than after a short one, MB, and the promised maximum. */
  kept?: { mb: number; mostMb: number } | undefined;
  /** How long others' lists may take, p99 in ms, if that is promised. */
  readMs?: number | undefined;
  /** How long `/livez` may take, p99 in ms, if that is more than `usualLivezMs`. */
  livezMs?: number | undefined;
};

const mb = 1_000_000;
/** Files grow in steps, for every table and index that was written. */
const stepBytes = 8 * mb;

export const names = {
  quietAck: 'quiet ack p99 ms',
  ack: 'ack p99 ms',
  ackMost: 'ack p99 ms at most',
  livez: 'livez p99 ms',
  livezMost: 'livez p99 ms at most',
  livezFailed: 'livez failed',
  login: 'login max ms',
  loginsFailed: 'logins failed',
  read: 'read p99 ms',
  readMost: 'read p99 ms at most',
  readsFailed: 'reads failed',
  memory: 'memory MB',
  memoryMost: 'memory MB at most',
  kept: 'kept MB',
  keptMost: 'kept MB at most',
  tables: 'tables MB',
  tablesMost: 'tables MB at most',
} as const;

const usualMemoryMb = 200;
const usualLivezMs = 200;

/** All figures in one row. A bound that depends on the run stands beside its figure. */
export function observe(seen: Seen): Observations {
  const { quiet, noisy, noise, grownBytes, quotaBytes, memoryMb = usualMemoryMb, readMs } = seen;
  const { livezMs = usualLivezMs, kept } = seen;
  return {
    [names.quietAck]: quiet.ackP99Ms,
    [names.ack]: noisy.ackP99Ms,
    [names.ackMost]: Math.max(500, 3 * quiet.ackP99Ms),
    [names.livez]: noisy.livezP99Ms,
    [names.livezMost]: livezMs,
    [names.livezFailed]: noisy.livezFailed,
    [names.login]: noisy.loginMaxMs,
    [names.loginsFailed]: noisy.loginsFailed,
    [names.read]: noisy.readP99Ms,
    [names.readsFailed]: noisy.readsFailed,
    ...(readMs === undefined ? {} : { [names.readMost]: readMs }),
    [names.memory]: Math.round((noisy.residentBytes - quiet.residentBytes) / 1_048_576),
    [names.memoryMost]: memoryMb,
    ...(kept && { [names.kept]: kept.mb, [names.keptMost]: kept.mostMb }),
    [names.tables]: tenths(grownBytes),
    [names.tablesMost]: tenths(Math.max(5 * noise.bytesSent, quotaBytes) + stepBytes),
    'noise sent MB': tenths(noise.bytesSent),
    'meter late ms': noisy.ownDelayMs,
    'noise CPU s': Math.round(noise.cpuMs / 100) / 10,
  };
}

const tenths = (bytes: number) => Math.round(bytes / (mb / 10)) / 10;

/** By which factor times and sizes may exceed the promise; 1: not at all. */
export type Leniency = { time: number; memory: number };
const asPromised: Leniency = { time: 1, memory: 1 };

/** The promises that did not hold, each with its figures. */
export function brokenBounds(
  seen: Observations,
  { time, memory }: Leniency = asPromised,
): string[] {
  const of = (name: string) => seen[name] ?? Number.NaN;
  const readMost = seen[names.readMost];
  const ofReads: [string, number][] =
    readMost === undefined
      ? []
      : [
          [names.read, readMost * time],
          [names.readsFailed, 0],
        ];
  const keptMost = seen[names.keptMost];
  const ofKept: [string, number][] =
    keptMost === undefined ? [] : [[names.kept, keptMost * memory]];
  const bounds: [string, number][] = [
    [names.ack, of(names.ackMost) * time],
    [names.livez, of(names.livezMost) * time],
    [names.livezFailed, 0],
    [names.login, 2_000 * time],
    [names.loginsFailed, 0],
    ...ofReads,
    [names.memory, of(names.memoryMost) * memory],
    ...ofKept,
    [names.tables, of(names.tablesMost)],
  ];
  return bounds
    .filter(([name, most]) => !(of(name) <= most))
    .map(([name, most]) => `${name}: ${of(name)}, promised at most ${most}`);
}
