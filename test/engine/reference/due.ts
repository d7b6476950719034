import type { Cause } from '../../../src/contract/purpose.ts';
import { runOf, silenceOf } from './collected.ts';
import { windowLength, type Log } from './log.ts';

/** When a connector did not listen, ascending; `toTs` is null while it lasts. */
export type Gap = { fromTs: number; toTs: number | null };

/** When the evidence of a cause is complete, and when its tick runs; Infinity while a gap lasts. */
export type Due = { d: number; r: number };

const quietMs = 300_000;

/** The tick that a cause waits for, if it waits for one. */
export function dueOf(log: Log, cause: Cause, index: number, gaps: readonly Gap[]): Due | null {
  const { forMs, noneForMs } = cause.threshold ?? {};
  if (noneForMs !== undefined) {
    const { sinceTs, completeTs } = silenceOf(log, index);
    if (completeTs !== null) return null;
    const d = afterListening(sinceTs, noneForMs, gaps);
    return { d, r: notBefore(d, Math.min(quietMs, noneForMs), gaps) };
  }
  if (forMs === undefined) return null;
  const run = runOf(log, cause, index);
  const first = run?.outcomes[0];
  const nth = run?.outcomes[windowLength(cause).n - 1];
  if (!run || !first || !nth || run.completeTs !== null) return null;
  const d = Math.max(first.t + forMs, nth.t);
  const r = Math.max(d, nth.arrivedTs) + (nth.ageMs > 60_000 ? 60_000 : 2_000);
  return { d, r: notBefore(r, quietMs, gaps) };
}

/** When to look again: R, or what it would be if a gap that lasts had ended as it began. */
export function lookAgainTs(log: Log, cause: Cause, index: number, gaps: readonly Gap[]) {
  const ended = gaps.map(({ fromTs, toTs }) => ({ fromTs, toTs: toTs ?? fromTs }));
  const r = dueOf(log, cause, index, gaps)?.r;
  return r === Infinity ? dueOf(log, cause, index, ended)?.r : r;
}

/** When so much time was listened to since then. */
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

/** Not in a gap, nor before the connector has listened again for so long. */
function notBefore(at: number, quiet: number, gaps: readonly Gap[]): number {
  return gaps.reduce((time, { fromTs, toTs }) => {
    const until = (toTs ?? Infinity) + quiet;
    return time > fromTs && time < until ? until : time;
  }, at);
}
