import { inPresentTime, timeIn, type Log } from './log.ts';

type Number = { t: number; val: number };
type Over = { ms: number; stat: 'avg' | 'sum' | 'delta' };

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
  const sum = [...bins.values()]
    .map((bin) => bin.reduce((total, { val }) => finite(total + val), 0))
    .reduce((total, ofBin) => finite(total + ofBin), 0);
  return stat === 'sum' ? sum : sum / within.length;
}

/** A number that is too large becomes the largest one. */
export function finite(number: number): number {
  return Math.min(Number.MAX_VALUE, Math.max(-Number.MAX_VALUE, number));
}
