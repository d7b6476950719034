import type { OnRows } from '../../db/portable/rows.ts';
import type { Screen } from '../simulate/screen.ts';

const number = (n: number) => Math.round(n).toLocaleString('en-US');

/**
 * Reports the progress of a copy, from its first row on, at the interval of the screen.
 * `nowMs`: any clock.
 */
export function showRows(screen: Screen, nowMs: () => number = () => performance.now()): OnRows {
  let startMs: number | undefined;
  let nextMs = 0;
  return ({ table, rows, expected }) => {
    const now = nowMs();
    if (startMs === undefined) [startMs, nextMs] = [now, now + screen.refreshMs];
    if (now < nextMs) return;
    nextMs = now + screen.refreshMs;
    const perSecond = rows / ((now - startMs) / 1_000);
    // The expected number is an estimate: beyond it no percentage is shown.
    const share = expected > rows ? `, ${Math.floor((100 * rows) / expected)} %` : '';
    screen.live(`${number(rows)} rows${share}, ${number(perSecond)} rows/s, now ${table}`);
  };
}

/** The last line of a copy: how much it was and how long it took. */
export function summarise(
  { tables }: { tables: readonly { rows: number; bytes: number }[] },
  seconds: number,
): string {
  const sum = (key: 'rows' | 'bytes') => tables.reduce((total, each) => total + each[key], 0);
  const megabytes = Math.ceil(sum('bytes') / 2 ** 20);
  return `${tables.length} tables, ${number(sum('rows'))} rows, ${number(megabytes)} MB, ${seconds.toFixed(1)} s`;
}
