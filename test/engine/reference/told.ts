import type { CauseDetail, CauseSense } from '../../../src/contract/event.ts';
import type { Cause } from '../../../src/contract/purpose.ts';
import { runOf, silenceOf, windowOf } from './collected.ts';
import { windowLength, type Log, type Outcome } from './log.ts';

/** What is reported of a cause: the outcomes it is based on, and since when it has lasted. */
type Standing = { outcomes: Outcome[]; sinceTs?: number; completeTs?: number | null };

function standingOf(log: Log, cause: Cause, index: number): Standing {
  const { forMs, noneForMs } = cause.threshold ?? {};
  if (noneForMs !== undefined) return { outcomes: [], ...silenceOf(log, cause, index) };
  if (forMs === undefined) return { outcomes: windowOf(log, cause, index) };
  const { outcomes = [], completeTs = null } = runOf(log, cause, index) ?? {};
  const first = outcomes[0];
  return first ? { outcomes, sinceTs: first.t, completeTs } : { outcomes };
}

/** The newest measurement that agreed; a silence has none. */
export function newestAgreed(log: Log, cause: Cause, index: number): Outcome | undefined {
  return standingOf(log, cause, index).outcomes.findLast(({ outcome }) => outcome.agrees);
}

/** What is reported of a cause that holds at `ts`: the newest measurement that agreed, and how it came to hold. */
export function detailsOf(
  log: Log,
  cause: Cause,
  index: number,
  { ts, nowTs }: { ts: number; nowTs: number },
): { sense?: CauseSense; why: CauseDetail } {
  const { sId, orderId = 0, thresholds, threshold } = cause;
  const { outcomes, sinceTs, completeTs } = standingOf(log, cause, index);
  const shown = Object.entries(thresholds).filter(
    ([, value]) => !Array.isArray(value) || value.length <= 16,
  );
  const why: CauseDetail = {
    sId,
    orderId,
    thresholds: Object.fromEntries(shown),
    negate: threshold?.negate ?? false,
    matched: outcomes.filter(({ outcome }) => outcome.agrees).length,
    of: outcomes.length,
    needed: windowLength(cause).n,
  };
  if (threshold?.over) why.over = threshold.over;
  if (threshold?.relative) why.relative = true;
  if (sinceTs !== undefined) {
    why.sinceTs = sinceTs;
    const until = (at: number) => Math.max(at, completeTs ?? -Infinity) - sinceTs;
    if (threshold?.forMs === undefined) why.silentMs = until(nowTs);
    else why.heldMs = until(ts);
  }
  const newest = newestAgreed(log, cause, index);
  if (!newest) return { why };
  if (newest.outcome.compared !== undefined) why.compared = newest.outcome.compared;
  return { sense: senseOf(sId, newest), why };
}

/** A position is reported as 1 (inside) or 0. Zero has no sign. */
export function senseOf(sId: string, { measurement: { val, ts }, outcome }: Outcome): CauseSense {
  if (typeof val === 'number') return { sId, val: val + 0, ts };
  return { sId, val: outcome.inside ? 1 : 0, ts, lat: val.lat + 0, long: val.long + 0 };
}
