import type { Measurement } from '../../contract/values.ts';
import type { WallMs } from '../../lib/clock-readings.ts';

/** A measurement with a time so much above its arrival is ahead: it is no sign of how late it is. */
export const aheadMs = 10_000;

/** For so long all of a sense's measurements are too late before its clock is taken to have been set back. */
const setBackAfterMs = 15 * 60_000;
const fewestOfRun = 3;

/**
 * Measurements of a sense that were all too late, without one that was not in between. The last `count` of
 * them are each later by their time than the one before.
 */
export type LateRun = {
  total: number;
  count: number;
  firstTs: number;
  firstArrivedTs: number;
  lastTs: number;
};

/**
 * What is known of a sense's clock beside the history's newest measurement. The clock is the newest time of
 * those that were not ahead; what is below it is too late.
 */
export type Watermark = {
  /** The history's newest: once that is another one, this counts no more. */
  newestTs: number;
  newestVal: Measurement['val'] | undefined;
  /** Null: all that there is was ahead. */
  clockTs: number | null;
  /** The values that were evaluated of that time. Absent in what 0.3.0 kept, and after an import. */
  vals?: Measurement['val'][];
  late: LateRun | null;
};

/** When the device was last told of its clock, ms; null: never. */
export type Remarked = { aheadTs: number | null; backTs: number | null };

/** Where that is kept among the clocks of its senses, whose names are not empty. */
export const ofDevice = '';

/** After one more measurement that was too late. One that does not go on with the run begins another. */
export function extendRun(run: LateRun | null, ts: number, arrivedTs: WallMs): LateRun {
  const total = (run?.total ?? 0) + 1;
  const begun = { total, count: 1, firstTs: ts, firstArrivedTs: arrivedTs, lastTs: ts };
  if (!run || ts <= run.lastTs) return begun;
  const grown = { ...run, total, count: run.count + 1, lastTs: ts };
  // A backlog first, and live values behind it: these have a run of their own.
  return isLong(grown, arrivedTs) && !keepsPace(grown, arrivedTs) ? begun : grown;
}

/** Whether it shows that the clock of the sense was set back: it goes forward, and about as time does. */
export function isSetBack(run: LateRun, arrivedTs: WallMs): boolean {
  return run.count >= fewestOfRun && isLong(run, arrivedTs) && keepsPace(run, arrivedTs);
}

const isLong = ({ firstArrivedTs }: LateRun, arrivedTs: WallMs) =>
  arrivedTs - firstArrivedTs >= setBackAfterMs;

function keepsPace({ firstTs, firstArrivedTs, lastTs }: LateRun, arrivedTs: WallMs): boolean {
  const wentMs = lastTs - firstTs;
  const tookMs = arrivedTs - firstArrivedTs;
  return wentMs >= tookMs / 2 && wentMs <= tookMs * 2;
}

/** What an import brought of a sense. */
type Imported = {
  /** The newest of it that is not ahead, ms; -Infinity: none is. */
  plainTs: number;
  /** Whether some of it is ahead: after `aheadTs`. */
  isAhead: boolean;
  aheadTs: number;
};

/**
 * A sense's clock after an import, as measurements would have left it: what is not ahead moves it forward, what is
 * ahead does not. `newest`: the history's newest now. Null: it stays as it is, or counts no more; `unknown`:
 * the history says where it was before what is ahead.
 */
export function watermarkAfterImport(
  clock: Watermark | undefined,
  newest: { ts: number; val: Measurement['val'] },
  { plainTs, isAhead, aheadTs }: Imported,
): Watermark | 'unknown' | null {
  const moved = (clockTs: number | null) =>
    plainTs === -Infinity ? clockTs : Math.max(clockTs ?? -Infinity, plainTs);
  if (clock?.newestTs === newest.ts) {
    const clockTs = moved(clock.clockTs);
    if (clockTs === clock.clockTs) return null;
    const { newestTs, newestVal } = clock;
    return { newestTs, newestVal, clockTs, late: null };
  }
  if (!isAhead || newest.ts <= aheadTs) return null;
  const wasAhead = clock !== undefined && clock.newestTs > aheadTs;
  if (!wasAhead) return 'unknown';
  const { ts: newestTs, val: newestVal } = newest;
  return { newestTs, newestVal, clockTs: moved(clock.clockTs), late: null };
}
