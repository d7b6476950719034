import type { Measurement } from '../../contract/values.ts';
import type { WallMs } from '../../lib/clock-readings.ts';

/** A measurement whose time is more than this above its arrival is ahead. It says nothing about how late others are. */
export const aheadMs = 10_000;

/** If all measurements of a sense are too late for this long, its clock is taken to have been set back. */
const setBackAfterMs = 15 * 60_000;
const fewestOfRun = 3;

/**
 * Measurements of a sense that were all too late, without an exception in between. By their times, each of the last
 * `count` is later than the one before.
 */
export type LateRun = {
  total: number;
  count: number;
  firstTs: number;
  firstArrivedTs: number;
  lastTs: number;
};

/**
 * What is known of a sense's clock besides the history's newest measurement. The clock is the newest time that was not
 * ahead; older measurements are too late.
 */
export type Watermark = {
  /** The history's newest time. Once the history has another one, this watermark no longer applies. */
  newestTs: number;
  newestVal: Measurement['val'] | undefined;
  /** Null: all measurements were ahead. */
  clockTs: number | null;
  /** The values at that time that were evaluated. Absent in rows written by 0.3.0, and after an import. */
  vals?: Measurement['val'][];
  late: LateRun | null;
  /** When the last message arrived that changed it, ms: no newest value says that. Absent in rows up to 0.4.0. */
  arrivedTs?: WallMs | undefined;
};

/** When the device was last told about its clock, ms; null: never. */
export type Remarked = { aheadTs: number | null; backTs: number | null };

/** The key for `Remarked` among the watermarks of a device's senses; the names of senses are not empty. */
export const ofDevice = '';

/** Adds a measurement that was too late. One that does not continue the run begins a new one. */
export function extendRun(run: LateRun | null, ts: number, arrivedTs: WallMs): LateRun {
  const total = (run?.total ?? 0) + 1;
  const begun = { total, count: 1, firstTs: ts, firstArrivedTs: arrivedTs, lastTs: ts };
  if (!run || ts <= run.lastTs) return begun;
  const grown = { ...run, total, count: run.count + 1, lastTs: ts };
  // A backlog followed by live values: these begin a run of their own.
  return isLong(grown, arrivedTs) && !keepsPace(grown, arrivedTs) ? begun : grown;
}

/** Whether the run shows that the sense's clock was set back: it advances, about as fast as time. */
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

/** What an import added for a sense. */
type Imported = {
  /** The newest imported time that is not ahead, ms; -Infinity: none. */
  plainTs: number;
  /** Whether some imported times are ahead, that is later than `aheadTs`. */
  isAhead: boolean;
  aheadTs: number;
};

/**
 * A sense's watermark after an import, as measurements would have left it: times that are not ahead move it forward.
 * `newest`: the history's newest measurement now. Null: it stays as it is, or no longer applies. `unknown`: look up in
 * the history where it was before the times that are ahead.
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
