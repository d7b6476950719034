import type { Cause } from '../../../src/contract/purpose.ts';
import {
  inPresentTime,
  isKept,
  isOutcomeOf,
  oldestTime,
  windowLength,
  type Entry,
  type Log,
  type Outcome,
} from './log.ts';

/** The last outcomes that count: since a firing or an entry, and no older than `maxAgeMs` allows. */
export function windowOf(log: Log, cause: Cause, index: number): Outcome[] {
  const emptied = log.entries.findLastIndex(({ kind }) => kind === 'fired' || kind === 're-entry');
  const isOf = isOutcomeOf(index);
  return inPresentTime(log.entries)
    .filter(
      (entry, position): entry is Outcome =>
        position > emptied && isOf(entry) && isKept(log.entries, position, cause),
    )
    .slice(-windowLength(cause).m);
}

/**
 * Consecutive outcomes that agreed, and their `positions` in the log. `completeTs`: the d of its tick, once that has
 * run.
 */
export type Run = { outcomes: Outcome[]; positions: number[]; completeTs: number | null };

/** The present run of a cause with `forMs`, if there is one. */
export function runOf(log: Log, cause: Cause, index: number): Run | null {
  const isOf = isOutcomeOf(index);
  const { forMs = 0 } = cause.threshold ?? {};
  let run: Run | null = null;
  for (const position of log.entries.keys()) {
    const known = inPresentTime(log.entries.slice(0, position + 1));
    const entry = known[position] as Entry;
    const oldest = oldestTime(log.entries.slice(0, position + 1), cause);
    if (run) run.outcomes = run.positions.map((at) => known[at] as Outcome);
    if (entry.kind === 'clock' && typeof run?.completeTs === 'number') {
      const [first] = run.outcomes as [Outcome];
      run.completeTs = Math.max(first.t + forMs, Math.min(run.completeTs, entry.latestTs));
    }
    if (isTooOld(run, oldest)) run = null;
    if (entry.kind === 'fired') run = null;
    if (entry.kind === 'tick' && entry.cause === index && run) run.completeTs = entry.d;
    if (!isOf(entry)) continue;
    if (!entry.outcome.agrees) run = null;
    else {
      run ??= { outcomes: [], positions: [], completeTs: null };
      run.outcomes.push(entry);
      run.positions.push(position);
    }
    if (isTooOld(run, oldest)) run = null;
  }
  return run;
}

function isTooOld(run: Run | null, oldest: number): boolean {
  const newest = run?.outcomes.at(-1);
  return newest !== undefined && newest.t < oldest;
}

type Silence = { sinceTs: number; completeTs: number | null };

/** Since when a sense is silent, and when that was long enough, once its tick has run. */
export function silenceOf(log: Log, cause: Cause, index: number): Silence {
  const { noneForMs = 0 } = cause.threshold ?? {};
  let silence: Silence = { sinceTs: log.enteredTs, completeTs: null };
  for (const entry of log.entries) {
    if (entry.kind === 'taken' && entry.cause === index) {
      silence = { sinceTs: entry.arrivedTs, completeTs: null };
    }
    if (entry.kind === 'tick' && entry.cause === index) silence.completeTs = entry.d;
    if (entry.kind === 'clock') {
      const sinceTs = Math.min(silence.sinceTs, entry.latestTs);
      const { completeTs: d } = silence;
      const completeTs = d && Math.max(sinceTs + noneForMs, Math.min(d, entry.latestTs));
      silence = { sinceTs, completeTs };
    }
  }
  return silence;
}

/** Whether what was collected so far meets a cause. */
export function holds(log: Log, cause: Cause, index: number): boolean {
  const { forMs, noneForMs } = cause.threshold ?? {};
  if (noneForMs !== undefined) return silenceOf(log, cause, index).completeTs !== null;
  if (forMs !== undefined) return typeof runOf(log, cause, index)?.completeTs === 'number';
  const agreed = windowOf(log, cause, index).filter(({ outcome }) => outcome.agrees);
  return agreed.length >= windowLength(cause).n;
}
