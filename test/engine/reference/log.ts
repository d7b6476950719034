import type { Measurement } from '../../../src/contract/values.ts';
import type { Cause } from '../../../src/contract/purpose.ts';

/** A cause's verdict: for a number with `compared`, for a position with `inside`. */
export type Judgement = { agrees: boolean; compared?: number; inside?: boolean };

/** A measurement that a cause took at `t`, and its age when it arrived. `outcome`: null if nothing was compared. */
export type Taken = {
  kind: 'taken';
  cause: number;
  t: number;
  arrivedTs: number;
  ageMs: number;
  measurement: Measurement;
  outcome: Judgement | null;
};

export type Outcome = Taken & { outcome: Judgement };

/**
 * `fired`: with the groups that held then. `tick`: of a cause, due at `d`. `re-entry`: a firing entered the state, or
 * the purpose, again. `clock`: the service's clock was set right, and no later time is known than `latestTs`.
 */
export type Entry =
  | Taken
  | { kind: 'tick'; cause: number; d: number }
  | { kind: 'fired'; groups: number[] }
  | { kind: 're-entry' }
  | { kind: 'clock'; latestTs: number };

/** Everything that happened to an event since its state (a global one: its purpose) was entered, oldest first. */
export type Log = { enteredTs: number; entries: Entry[] };

export type Window = { n: number; m: number };

/** A cause needs n of its last m outcomes. A run and a silence end with a single measurement. */
export function windowLength({ threshold, measurement }: Cause): Window {
  const n = threshold?.count ?? 1;
  if (threshold?.forMs !== undefined || threshold?.noneForMs !== undefined) return { n, m: n };
  return { n, m: Math.max(n, measurement?.count ?? 0) };
}

export const isOutcomeOf =
  (cause: number) =>
  (entry: Entry): entry is Outcome =>
    entry.kind === 'taken' && entry.cause === cause && entry.outcome !== null;

/** What happened since the state was last entered, in whatever way. */
export function sinceReentry({ entries }: Log): Entry[] {
  return entries.slice(entries.findLastIndex(({ kind }) => kind === 're-entry') + 1);
}

/** The entries with their present times: the clock may have been set right after them. */
export function inPresentTime(entries: readonly Entry[]): readonly Entry[] {
  if (!entries.some(({ kind }) => kind === 'clock')) return entries;
  const present = entries.slice();
  let latestTs = Infinity;
  for (let position = entries.length - 1; position >= 0; position -= 1) {
    const entry = entries[position] as Entry;
    if (entry.kind === 'clock') latestTs = Math.min(latestTs, entry.latestTs);
    if (entry.kind === 'taken' && entry.t > latestTs) present[position] = { ...entry, t: latestTs };
    if (entry.kind === 'tick' && entry.d > latestTs) present[position] = { ...entry, d: latestTs };
  }
  return present;
}

/** Whether what a cause took at `position` was never too old: neither when the clock was set right, nor now. */
export function isKept(entries: readonly Entry[], position: number, cause: Cause): boolean {
  const ends = entries.flatMap(({ kind }, at) => (kind === 'clock' && at > position ? [at] : []));
  return [...ends, entries.length].every((end) => {
    const known = entries.slice(0, end);
    const entry = inPresentTime(known)[position];
    return entry?.kind === 'taken' && entry.t >= oldestTime(known, cause);
  });
}

/** The oldest time that a cause keeps: T − `maxAgeMs`, T being the newest time of any cause's measurement or tick. */
export function oldestTime(entries: readonly Entry[], { threshold }: Cause): number {
  if (threshold?.maxAgeMs === undefined) return -Infinity;
  const times = inPresentTime(entries).map((entry) => {
    if (entry.kind === 'taken') return entry.t;
    return entry.kind === 'tick' ? entry.d : -Infinity;
  });
  return Math.max(-Infinity, ...times) - threshold.maxAgeMs;
}

/** The time at which a cause takes a measurement of `t`: within one cause, time never goes back. */
export function timeIn({ entries }: Log, cause: number, t: number): number {
  const last = inPresentTime(entries).findLast(
    (entry) => entry.kind === 'taken' && entry.cause === cause,
  );
  return last?.kind === 'taken' ? Math.max(last.t, t) : t;
}

/** Whether an event has time members. Without them it takes each measurement at the measurement's own time. */
export function speaksOfTime(causes: Cause[]): boolean {
  return causes.some(({ threshold = { negate: false, relative: false } }) => {
    const { forMs, noneForMs, maxAgeMs, over } = threshold;
    return [forMs, noneForMs, maxAgeMs, over].some((member) => member !== undefined);
  });
}
