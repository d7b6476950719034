import type { Measurement } from '../../contract/measurement.ts';
import type { SenseClock } from './sense-clock.ts';

/** What an import brought of a sense. */
export type Imported = {
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
export function clockAfterImport(
  clock: SenseClock | undefined,
  newest: { ts: number; val: Measurement['val'] },
  { plainTs, isAhead, aheadTs }: Imported,
): SenseClock | 'unknown' | null {
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
