import type { Cause } from '../../../src/contract/purpose.ts';
import type { Began } from '../../../src/engine/compile.ts';
import { runOf, silenceOf, windowOf } from './collected.ts';
import { isOutcomeOf, type Log, type Outcome, speaksOfTime, windowLength } from './log.ts';

/**
 * The first measurement of what an event fires for: the latest begin of the causes of these indexes; null if one is not
 * known. If every window is one outcome, it is the measurement that fires it, `at`.
 */
export function beganOf(all: Cause[], indexes: number[], log: Log, at: Began): Began | null {
  const causes = indexes.map((index) => all[index] as Cause);
  if (!speaksOfTime(causes) && causes.every((cause) => windowLength(cause).m === 1)) return at;
  const begins = indexes.map((index) => beginOf(all[index] as Cause, log, index));
  if (begins.some((begin) => begin === null)) return null;
  const [first, ...others] = begins as Began[];
  if (!first) return null;
  const latest = others.reduce((one, other) => (other.ts > one.ts ? other : one), first);
  return { ...latest, ts: Math.min(latest.ts, at.ts) };
}

function beginOf(cause: Cause, log: Log, index: number): Began | null {
  const { noneForMs, forMs, maxAgeMs } = cause.threshold ?? {};
  if (noneForMs !== undefined) {
    const { sinceTs } = silenceOf(log, cause, index);
    return { ts: sinceTs, arrivedTs: sinceTs };
  }
  if (forMs !== undefined) return madeBy(runOf(log, cause, index)?.outcomes[0]);
  const { n, m } = windowLength(cause);
  if (maxAgeMs === undefined && m > n && m > 30) return null;
  if (maxAgeMs !== undefined || m > n)
    return madeBy(windowOf(log, cause, index).find(({ outcome }) => outcome.agrees));
  return madeBy(inRow(log, index)[0]);
}

/** Its newest outcomes, as many as agreed one after the other since its window was emptied. */
function inRow(log: Log, index: number): Outcome[] {
  const emptied = log.entries.findLastIndex(({ kind }) => kind === 'fired' || kind === 're-entry');
  const outcomes = log.entries.slice(emptied + 1).filter(isOutcomeOf(index));
  return outcomes.slice(outcomes.findLastIndex(({ outcome }) => !outcome.agrees) + 1);
}

const madeBy = (taken: Outcome | undefined): Began | null =>
  taken ? { ts: asOf(taken), arrivedTs: taken.arrivedTs } : null;

/** What is ahead counts as of its arrival. */
const asOf = ({ measurement, arrivedTs }: Outcome) =>
  measurement.ts > arrivedTs + 10_000 ? arrivedTs : measurement.ts;
