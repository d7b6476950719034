import type { Cause } from '../../../src/contract/purpose.ts';
import { isOutcomeOf, oldestTime, windowLength, type Log, type Outcome } from './log.ts';

/** The last outcomes that are looked at: since a firing or an entry, and no older than `maxAgeMs` allows. */
export function windowOf(log: Log, cause: Cause, index: number): Outcome[] {
  const emptied = log.entries.findLastIndex(({ kind }) => kind === 'fired' || kind === 're-entry');
  const oldest = oldestTime(log.entries, cause);
  return log.entries
    .slice(emptied + 1)
    .filter(isOutcomeOf(index))
    .filter(({ t }) => t >= oldest)
    .slice(-windowLength(cause).m);
}

/** Outcomes that agreed one after the other; `completeTs`: the d of its tick, once that has run. */
export type Run = { outcomes: Outcome[]; completeTs: number | null };

/** The run of a cause with `forMs` that lasts, if one does. */
export function runOf(log: Log, cause: Cause, index: number): Run | null {
  const isOf = isOutcomeOf(index);
  let run: Run | null = null;
  for (const [position, entry] of log.entries.entries()) {
    const oldest = oldestTime(log.entries.slice(0, position + 1), cause);
    if (isTooOld(run, oldest)) run = null;
    if (entry.kind === 'fired') run = null;
    if (entry.kind === 'tick' && entry.cause === index && run) run.completeTs = entry.d;
    if (!isOf(entry)) continue;
    if (!entry.outcome.agrees) run = null;
    else if (run) run.outcomes.push(entry);
    else run = { outcomes: [entry], completeTs: null };
    if (isTooOld(run, oldest)) run = null;
  }
  return run;
}

function isTooOld(run: Run | null, oldest: number): boolean {
  const newest = run?.outcomes.at(-1);
  return newest !== undefined && newest.t < oldest;
}

type Silence = { sinceTs: number; completeTs: number | null };

/** Since when nothing was heard of a sense, and when that was complete, once its tick has run. */
export function silenceOf(log: Log, index: number): Silence {
  let silence: Silence = { sinceTs: log.enteredTs, completeTs: null };
  for (const entry of log.entries) {
    if (entry.kind === 'taken' && entry.cause === index) {
      silence = { sinceTs: entry.arrivedTs, completeTs: null };
    }
    if (entry.kind === 'tick' && entry.cause === index) silence.completeTs = entry.d;
  }
  return silence;
}

/** Whether a cause is met by what was collected so far. */
export function holds(log: Log, cause: Cause, index: number): boolean {
  const { forMs, noneForMs } = cause.threshold ?? {};
  if (noneForMs !== undefined) return silenceOf(log, index).completeTs !== null;
  if (forMs !== undefined) return typeof runOf(log, cause, index)?.completeTs === 'number';
  const agreed = windowOf(log, cause, index).filter(({ outcome }) => outcome.agrees);
  return agreed.length >= windowLength(cause).n;
}
