import type { Moment } from './outcome.ts';
import type { Run } from './time-evidence.ts';

/** How long a tick waits for measurements that are under way; longer where the last one came late. Ms. */
const marginMs = 2_000;
const lateMarginMs = 60_000;
/** Older than that at its arrival, a measurement came late. */
const lateMs = 60_000;

type Due = NonNullable<Run['due']>;
type Asked = { forMs: number; needed: number };

/**
 * A run with one agreeing outcome more, its `count`-th, which is taken at `t`. It is complete `forMs` after its first
 * measurement, or with the outcome that was still missing then.
 */
export function goOn(
  run: Run | null,
  { forMs, needed }: Asked,
  count: number,
  t: number,
  moment: Moment,
): Run {
  const newestAgeMs = ageOf(moment);
  const sinceT = run?.sinceT ?? t;
  const isComplete = run?.isComplete ?? false;
  const due = count === needed ? dueOf(sinceT + forMs, t, moment) : (run?.due ?? null);
  return { sinceT, newestT: t, newestAgeMs, due, isComplete };
}

function dueOf(completeT: number, t: number, moment: Moment): Due {
  const due = Math.max(completeT, t);
  const margin = moment.arrivedTs - moment.t > lateMs ? lateMarginMs : marginMs;
  return { t: due, ts: Math.max(due, moment.arrivedTs) + margin };
}

/**
 * The same where no time may be later than `latestTs`: the clock was ahead and is right again. `leastT`: `forMs` after the
 * beginning of the run. A tick that waits for longer than any margin waits for an arrival that the clock dated ahead.
 */
export function dueBack(due: Due, leastT: number, latestTs: number): Due {
  const t = Math.max(leastT, Math.min(due.t, latestTs));
  const earliestTs = Math.max(t, latestTs);
  return { t, ts: due.ts > earliestTs + lateMarginMs ? earliestTs + marginMs : due.ts };
}

/** How old a measurement was at its arrival, ms; one that is ahead of it is not older than that. */
export function ageOf({ t, arrivedTs }: Moment): number {
  return Math.max(0, arrivedTs - t);
}
