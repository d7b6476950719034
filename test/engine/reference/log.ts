import type { Measurement } from '../../../src/contract/values.ts';
import type { Cause } from '../../../src/contract/purpose.ts';

/** What a cause made of a value: `compared` of a number, `inside` of a position. */
export type Judgement = { agrees: boolean; compared?: number; inside?: boolean };

/** A measurement that a cause took at `t`, so old at its arrival; `outcome` is null where nothing was compared. */
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
 * `tick`: of a cause, which was due at `d`. `re-entry`: a firing entered the state, or the purpose, again. `clock`: the
 * service's clock was set right, and no time is later than `latestTs` since.
 */
export type Entry =
  | Taken
  | { kind: 'tick'; cause: number; d: number }
  | { kind: 'fired' }
  | { kind: 're-entry' }
  | { kind: 'clock'; latestTs: number };

/** All that happened to an event since its state (a global one: its purpose) was entered, oldest first. */
export type Log = { enteredTs: number; entries: Entry[] };

export type Window = { n: number; m: number };

/** n of the last m: what a cause asks for. A run and a silence end with a single measurement. */
export function windowLength({ threshold, measurement }: Cause): Window {
  const n = threshold?.count ?? 1;
  if (threshold?.forMs !== undefined || threshold?.noneForMs !== undefined) return { n, m: n };
  return { n, m: Math.max(n, measurement?.count ?? 0) };
}

export const isOutcomeOf =
  (cause: number) =>
  (entry: Entry): entry is Outcome =>
    entry.kind === 'taken' && entry.cause === cause && entry.outcome !== null;

/** What happened since the state was entered last, by whatever. */
export function sinceReentry({ entries }: Log): Entry[] {
  return entries.slice(entries.findLastIndex(({ kind }) => kind === 're-entry') + 1);
}

/** The entries with the times that they have behind all of them: the clock may have been set right in between. */
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

/** Whether what a cause took at `position` was never too old: not when the clock was set right, and not now. */
export function isKept(entries: readonly Entry[], position: number, cause: Cause): boolean {
  const ends = entries.flatMap(({ kind }, at) => (kind === 'clock' && at > position ? [at] : []));
  return [...ends, entries.length].every((end) => {
    const known = entries.slice(0, end);
    const entry = inPresentTime(known)[position];
    return entry?.kind === 'taken' && entry.t >= oldestTime(known, cause);
  });
}

/** What is older is dropped by a cause: T − `maxAgeMs`, T being the newest time that any cause evaluated, or of a tick. */
export function oldestTime(entries: readonly Entry[], { threshold }: Cause): number {
  if (threshold?.maxAgeMs === undefined) return -Infinity;
  const times = inPresentTime(entries).map((entry) => {
    if (entry.kind === 'taken') return entry.t;
    return entry.kind === 'tick' ? entry.d : -Infinity;
  });
  return Math.max(-Infinity, ...times) - threshold.maxAgeMs;
}

/** When a cause takes a measurement of `t`: in one cause time never goes back. */
export function timeIn({ entries }: Log, cause: number, t: number): number {
  const last = inPresentTime(entries).findLast(
    (entry) => entry.kind === 'taken' && entry.cause === cause,
  );
  return last?.kind === 'taken' ? Math.max(last.t, t) : t;
}

/** An event without members of time keeps no times: it takes each measurement as of its own. */
export function speaksOfTime(causes: Cause[]): boolean {
  return causes.some(({ threshold = { negate: false, relative: false } }) => {
    const { forMs, noneForMs, maxAgeMs, over } = threshold;
    return [forMs, noneForMs, maxAgeMs, over].some((member) => member !== undefined);
  });
}
