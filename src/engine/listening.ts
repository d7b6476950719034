import type { Runtime } from './runtime.ts';

/** When the device's connector did not listen, ascending; `toTs` null while it lasts. Absent: it always did. */
export type Listening = { gaps: readonly Gap[] };

type Gap = { fromTs: number; toTs: number | null };

/** A connector that says nothing for so long may still listen, ms: a gap is longer. */
export const unnoticedGapMs = 15_000;

/** How long a connector listens again before ticks run, ms: what devices have kept meanwhile comes in first. */
export const pauseMs = 300_000;

/**
 * Gaps that ended before this time make no difference to when the ticks of this evidence run; null: none does, there is
 * no such tick.
 */
export function listenedSince({ local, global }: Pick<Runtime, 'local' | 'global'>): number | null {
  const times = [...local, ...global].flatMap((evidence) =>
    (evidence?.time?.causes ?? []).flatMap((cause) => [
      cause?.run?.due?.ts ?? [],
      cause?.silence?.sinceTs ?? [],
    ]),
  );
  const earliest = times.flat().reduce((least, ts) => Math.min(least, ts), Infinity);
  return earliest === Infinity ? null : earliest - pauseMs;
}

/** When so much time was listened to since then. A gap that lasts goes on until `nowTs` at least. */
export function afterListening(
  sinceTs: number,
  ms: number,
  { gaps }: Listening,
  nowTs: number,
): number {
  let [at, left] = [sinceTs, ms];
  for (const gap of gaps) {
    const until = endOf(gap, nowTs);
    if (until <= at) continue;
    const listened = Math.max(0, gap.fromTs - at);
    if (listened >= left) break;
    left -= listened;
    at = until;
  }
  return at + left;
}

/** When a tick of that time runs: not in a gap, and not in the pause after it. */
export function afterPauses(
  dueTs: number,
  pause: number,
  { gaps }: Listening,
  nowTs: number,
): number {
  let at = dueTs;
  for (const gap of gaps) {
    const until = endOf(gap, nowTs) + pause;
    if (at > gap.fromTs && at < until) at = until;
  }
  return at;
}

function endOf({ fromTs, toTs }: Gap, nowTs: number): number {
  return toTs ?? Math.max(fromTs, nowTs);
}
