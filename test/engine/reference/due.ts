import type { Cause } from '../../../src/contract/purpose.ts';
import { runOf, silenceOf, type Run } from './collected.ts';
import { inPresentTime, windowLength, type Log, type Outcome } from './log.ts';

/** When a connector was not listening, ascending; `toTs` is null while a gap lasts. */
export type Gap = { fromTs: number; toTs: number | null };

/**
 * When a cause's evidence is complete, when its tick runs (Infinity while a gap lasts), and how old the newest
 * measurement was when it arrived.
 */
export type Due = { d: number; r: number; ageMs: number };

const quietMs = 300_000;

/** The tick that a cause waits for, if any. */
export function dueOf(log: Log, cause: Cause, index: number, gaps: readonly Gap[]): Due | null {
  const { forMs, noneForMs } = cause.threshold ?? {};
  if (noneForMs !== undefined) {
    const { sinceTs, completeTs } = silenceOf(log, cause, index);
    if (completeTs !== null) return null;
    const d = afterListening(sinceTs, noneForMs, gaps);
    return { d, r: notBefore(d, Math.min(quietMs, noneForMs), gaps), ageMs: 0 };
  }
  if (forMs === undefined) return null;
  const run = runOf(log, cause, index);
  const { n } = windowLength(cause);
  if (!run || run.outcomes.length < n || run.completeTs !== null) return null;
  const { d, r, ageMs } = tickOf(run, log, forMs, n);
  return { d, r: notBefore(r, quietMs, gaps), ageMs };
}

/** The tick of a run that has all its outcomes, adjusted each time the clock was set right. */
function tickOf({ positions }: Run, { entries }: Log, forMs: number, n: number): Due {
  const [first, nth, newest] = [0, n - 1, -1].map((at) => positions.at(at) as number) as [
    number,
    number,
    number,
  ];
  const timesOf = (end: number) => {
    const known = inPresentTime(entries.slice(0, end));
    const t = (at: number) => (known[at] as Outcome).t;
    return { d: Math.max(t(first) + forMs, t(nth)), newestT: newest < end ? t(newest) : null };
  };
  const { arrivedTs, ageMs: nthAgeMs } = entries[nth] as Outcome;
  let { d } = timesOf(nth + 1);
  let r = Math.max(d, arrivedTs) + (nthAgeMs > 60_000 ? 60_000 : 2_000);
  let { ageMs } = entries[newest] as Outcome;
  for (const [position, entry] of entries.entries()) {
    if (entry.kind !== 'clock' || position < nth) continue;
    const [before, after] = [timesOf(position), timesOf(position + 1)];
    const earliest = Math.max(after.d, entry.latestTs);
    const waitsForLeap = r > earliest + 60_000;
    const isBroughtBack =
      after.d !== before.d || waitsForLeap || (after.newestT ?? 0) !== (before.newestT ?? 0);
    if (isBroughtBack && after.newestT !== null)
      ageMs = Math.min(ageMs, Math.max(0, entry.latestTs - after.newestT));
    d = after.d;
    if (waitsForLeap) r = earliest + 2_000;
  }
  return { d, r, ageMs };
}

/** When to look again: R, or what it would be if a gap that lasts had ended as it began. */
export function lookAgainTs(log: Log, cause: Cause, index: number, gaps: readonly Gap[]) {
  const ended = gaps.map(({ fromTs, toTs }) => ({ fromTs, toTs: toTs ?? fromTs }));
  const r = dueOf(log, cause, index, gaps)?.r;
  return r === Infinity ? dueOf(log, cause, index, ended)?.r : r;
}

/** When `ms` of listening have passed since then. */
function afterListening(sinceTs: number, ms: number, gaps: readonly Gap[]): number {
  let [at, left] = [sinceTs, ms];
  for (const { fromTs, toTs } of gaps) {
    const until = toTs ?? Infinity;
    if (until <= at) continue;
    const heard = Math.max(0, fromTs - at);
    if (heard >= left) break;
    left -= heard;
    at = until;
  }
  return at + left;
}

/** Not in a gap, nor until the connector has listened again for `quiet`. */
function notBefore(at: number, quiet: number, gaps: readonly Gap[]): number {
  return gaps.reduce((time, { fromTs, toTs }) => {
    const until = (toTs ?? Infinity) + quiet;
    return time > fromTs && time < until ? until : time;
  }, at);
}
