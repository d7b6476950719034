import { describeDuration, describeProgress } from './duration-words.ts';
import type { CauseExplanation } from './explain-cause.ts';

/** Where a cause stands, in words: "agrees for 3 of 10 minutes, holds in 6 min 40 s". */
export function describeCause(cause: CauseExplanation, nowTs: number): string {
  if (cause.noneForMs !== undefined) return describeSilence(cause, cause.noneForMs, nowTs);
  const statistic = describeStatistic(cause);
  if (statistic !== null && cause.statistic === undefined) return statistic;
  const progress =
    cause.forMs === undefined ? describeCount(cause) : describeRun(cause, cause.forMs, nowTs);
  return statistic === null ? progress : `${statistic}: ${progress}`;
}

function describeSilence(cause: CauseExplanation, ofMs: number, nowTs: number): string {
  const { sinceTs = nowTs, dueTs, holds } = cause;
  if (holds) return `silent for ${describeDuration(Math.max(ofMs, nowTs - sinceTs))}, holds`;
  if (dueTs === undefined) return `waits for ${describeDuration(ofMs)} of silence`;
  // Not since when: only time counts in which the service listened.
  const done = describeProgress(ofMs - (dueTs - nowTs), ofMs);
  return `silent for ${done}, ${describeDue(dueTs, nowTs)}`;
}

function describeRun(cause: CauseExplanation, ofMs: number, nowTs: number): string {
  const { sinceTs, dueTs, holds, missing } = cause;
  if (holds) return `agreed for ${describeDuration(ofMs)}, holds`;
  // It disagreed, or the event fired: both end a run.
  if (sinceTs === undefined)
    return cause.seen ? 'begins with the next measurement that agrees' : 'no measurement yet';
  const done = `agrees for ${describeProgress(nowTs - sinceTs, ofMs)}`;
  if (dueTs === undefined) return missing > 0 ? `${done}, ${missingOf(missing)}` : done;
  return `${done}, ${describeDue(dueTs, nowTs)}`;
}

function describeDue(dueTs: number, nowTs: number): string {
  const leftMs = dueTs - nowTs;
  return leftMs < 1_000 ? 'holds at any moment' : `holds in ${describeDuration(leftMs)}`;
}

/** The number that `over` compares, or how long it is until there is one; null without `over`. */
function describeStatistic({ over, statistic, collectedMs = 0 }: CauseExplanation): string | null {
  if (!over) return null;
  const what = `${nouns[over.stat]} over ${describeDuration(over.ms)}`;
  if (statistic !== undefined) return `${what} ${statistic}`;
  return `${what} is compared after half of that: ${describeProgress(collectedMs, over.ms / 2)}`;
}

const nouns = { avg: 'average', sum: 'sum', delta: 'change' } as const;

function describeCount(cause: CauseExplanation): string {
  const { matched, of, needed, missing, holds } = cause;
  if (holds) return of <= 1 ? 'holds' : `${matched} of the last ${of} agree, holds`;
  if (needed === 1 || of === 0) return describeNone(cause);
  return `${matched} of ${needed} measurements agree, ${missingOf(missing)}`;
}

/** After a firing or an entry what was measured before does not count. */
function describeNone({ seen, of }: CauseExplanation): string {
  if (of > 0) return 'does not agree';
  return seen === undefined ? 'no measurement yet' : 'waits for the next measurement';
}

const missingOf = (missing: number) => (missing === 1 ? '1 is missing' : `${missing} are missing`);
