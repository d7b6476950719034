import { finite } from './finite.ts';

/** What is compared of a window of time; `ms` of it. */
export type Over = { ms: number; stat: 'avg' | 'sum' | 'delta' };

/** The values of one part of a window; `at`: its number since the Unix epoch. */
type Bin = { at: number; sum: number; count: number; first: number; last: number };

/** The values of the last 12 parts, oldest first. `sinceT`: when the first value was taken that the cause evaluated. */
export type Bins = { sinceT: number; list: readonly Bin[] };

const binCount = 12;

/** With one value more, which is not taken before the ones that are there. */
export function addToBins(bins: Bins | null, { ms }: Over, t: number, val: number): Bins {
  const at = Math.floor(t / Math.ceil(ms / binCount));
  const list = (bins?.list ?? []).filter((bin) => bin.at > at - binCount);
  const last = list.at(-1);
  if (last?.at === at) {
    const sum = finite(last.sum + val);
    list[list.length - 1] = { ...last, sum, count: last.count + 1, last: val };
  } else {
    list.push({ at, sum: val, count: 1, first: val, last: val });
  }
  return { sinceT: bins?.sinceT ?? t, list };
}

/** The statistic of what they hold at `t`; null before half of the window's time has passed. */
export function statisticOf({ sinceT, list }: Bins, { ms, stat }: Over, t: number): number | null {
  if (t - sinceT < ms / 2) return null;
  if (stat === 'delta') return finite((list.at(-1)?.last ?? 0) - (list[0]?.first ?? 0));
  let [sum, count] = [0, 0];
  // Oldest first: sums of floating-point numbers depend on the order.
  for (const bin of list) {
    sum = finite(sum + bin.sum);
    count += bin.count;
  }
  return stat === 'sum' ? sum : sum / count;
}
