import type { OverStat } from '../../../src/contract/values.ts';
import { inPresentTime, timeIn, type Log } from './log.ts';

type Number = { t: number; val: number };
type Over = { ms: number; stat: OverStat };

/**
 * The statistic of what a cause took since its entry or re-entry, or since the clock was set right behind it, and of
 * one more value; null until half the time has passed.
 */
export function statisticOf(log: Log, index: number, { ms, stat }: Over, more: Number) {
  const { entries } = log;
  const begun = entries.findLastIndex((entry, position) => {
    if (entry.kind !== 'clock') return entry.kind === 're-entry';
    const before = { ...log, entries: entries.slice(0, position) };
    return timeIn(before, index, -Infinity) > entry.latestTs;
  });
  const numbers = inPresentTime(entries).flatMap((entry, position): Number[] => {
    if (position <= begun) return [];
    if (entry.kind !== 'taken' || entry.cause !== index) return [];
    const { val } = entry.measurement;
    return typeof val === 'number' ? [{ t: entry.t, val }] : [];
  });
  numbers.push(more);
  if (more.t - (numbers[0] as Number).t < ms / 2) return null;
  const width = Math.ceil(ms / 12);
  const binOf = ({ t }: Number) => Math.floor(t / width);
  const newest = binOf(more);
  const within = numbers.filter((number) => binOf(number) > newest - 12);
  const bins = Map.groupBy(within, binOf);
  if (stat === 'delta') return finite(more.val - (within[0] as Number).val);
  if (stat === 'min') return Math.min(...within.map(({ val }) => val));
  if (stat === 'max') return Math.max(...within.map(({ val }) => val));
  if (stat === 'stddev') {
    const values = [...bins.values()].map((bin) =>
      bin.map(({ val }) => spreadOfOne(val)).reduce(addSpread),
    );
    const { count, squares } = values.reduce(addSpread);
    return Math.sqrt(squares / count);
  }
  const sum = [...bins.values()]
    .map((bin) => bin.reduce((total, { val }) => finite(total + val), 0))
    .reduce((total, ofBin) => finite(total + ofBin), 0);
  return stat === 'sum' ? sum : sum / within.length;
}

/** The mean of some numbers, and the sum of the squares of their differences from it. */
type Spread = { count: number; mean: number; squares: number };

const spreadOfOne = (val: number): Spread => ({ count: 1, mean: val, squares: 0 });

function addSpread(one: Spread, other: Spread): Spread {
  const count = one.count + other.count;
  const d = finite(other.mean - one.mean);
  const mean = finite(one.mean + finite((d * other.count) / count));
  const between = finite(((d * d) / count) * one.count * other.count);
  return { count, mean, squares: finite(finite(one.squares + other.squares) + between) };
}

/** A number that is too large becomes the largest one. */
export function finite(number: number): number {
  return Math.min(Number.MAX_VALUE, Math.max(-Number.MAX_VALUE, number));
}
