import type { MonotonicMs } from '../lib/clock-readings.ts';

/*
 * Decides whether the service's clock is believed. It is pure: service-clock.ts reads the clock every ten seconds,
 * passes each reading to `judgeReading`, and writes the result to the row that all processes share.
 *
 * A clock is believed while it advances like the monotonic clock. When it does not, it is in doubt, and nothing is
 * deleted by it: history that looked old only because of a leap forward would be lost. Everything else uses the clock
 * as it is: messages are stored, tokens expire, ticks run.
 */

const minuteMs = 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;

const rules = {
  /** How far a clock may be from where it should be. */
  toleranceMs: 2_000,
  /** How far ahead it may be if nothing measured the time: at a start, after a suspend, or after `steadyMs`. */
  awayMs: 2 * dayMs,
  /** A clock in doubt is believed again once it has advanced like the monotonic clock for this long. */
  steadyMs: hourMs,
  /** How often the row is updated. */
  writeEveryMs: minuteMs,
};

/** The row that all processes of a database share. */
export type SharedBelief = {
  /** The time that was last believed; in doubt, plus the time that a monotonic clock has measured since, ms. */
  reckonedTs: number;
  /** When the doubt began, by `reckonedTs`; null: the clock is believed. */
  doubtedTs: number | null;
};

/** A reading of the clocks and of the row. */
type Reading = {
  /** The clock's time, ms. */
  ts: number;
  monotonicMs: MonotonicMs;
  /** How long the machine has been suspended since it started. The monotonic clock stands still meanwhile. */
  suspendedMs: number;
  /** Null: no process has written it yet. */
  shared: SharedBelief | null;
};

/** `start`, `leap`: this process found it. `shared`: another process found and recorded it. */
type DoubtReason = 'start' | 'leap' | 'shared';

/**
 * `back`: the clock is right again. `steady`: it was steady for an hour. `shared`: another process or the operator
 * decided.
 */
type BeliefReason = 'back' | 'steady' | 'shared';

type Clocks = Pick<Reading, 'ts' | 'monotonicMs' | 'suspendedMs'>;

/** What a process knows about the clock. */
export type Belief =
  | { isDoubted: false; at: Clocks }
  | {
      isDoubted: true;
      doubtedTs: number;
      /** Where the clock should be: `ts` at this reading of the other two clocks. */
      reckoned: Clocks;
      /** The last reading, and since when the clock has advanced like the monotonic one. */
      last: Clocks;
      steadySinceMs: number;
      /** The row says so too. Only then can the row also end the doubt. */
      isShared: boolean;
    };

export type Judgement = {
  belief: Belief;
  /** What to write: a doubt begins, a doubt ends, or time has advanced. */
  write: { kind: 'doubt' | 'believe' | 'advance'; shared: SharedBelief } | null;
  /** What changed; null: nothing. */
  change:
    | { to: 'doubted'; reason: DoubtReason; aheadMs: number }
    | { to: 'believed'; reason: BeliefReason }
    | null;
};

/** Judges the clock by a reading. `before`: null at the start of a process. */
export function judgeReading(before: Belief | null, reading: Reading): Judgement {
  if (before === null) return judgeStart(reading);
  return before.isDoubted ? judgeDoubted(before, reading) : judgeBelieved(before.at, reading);
}

/** Where the clock should be according to the monotonic clock, ms. */
export function reckon(belief: Belief, monotonicMs: MonotonicMs): number {
  const from = belief.isDoubted ? belief.reckoned : belief.at;
  return from.ts + monotonicMs - from.monotonicMs;
}

/** Whether a clock that is ahead by this much may be believed. `awayMs`: time that nothing measured. */
const isWithin = (aheadMs: number, awayMs: number): boolean =>
  aheadMs >= -rules.toleranceMs && aheadMs <= Math.max(rules.toleranceMs, awayMs);

function judgeStart(reading: Reading): Judgement {
  const { shared, ts } = reading;
  if (shared === null) return believe(reading, null);
  const reckoned = { ...clocksOf(reading), ts: shared.reckonedTs };
  if (shared.doubtedTs !== null) return doubt(reading, reckoned, 'shared');
  return isWithin(ts - shared.reckonedTs, rules.awayMs)
    ? believe(reading, null)
    : doubt(reading, reckoned, 'start');
}

function judgeBelieved(at: Clocks, reading: Reading): Judgement {
  const reckoned = runOn(at, reading);
  if (reading.shared !== null && reading.shared.doubtedTs !== null)
    return doubt(reading, reckoned, 'shared');
  const wasSuspended = reading.suspendedMs - at.suspendedMs > rules.toleranceMs;
  // A machine that wakes up knows how long it slept, but the clock may be another machine's.
  const fromTs = wasSuspended ? at.ts + reading.monotonicMs - at.monotonicMs : reckoned.ts;
  return isWithin(reading.ts - fromTs, wasSuspended ? rules.awayMs : 0)
    ? believe(reading, null)
    : doubt(reading, reckoned, 'leap');
}

function judgeDoubted(before: Belief & { isDoubted: true }, reading: Reading): Judgement {
  const { shared, ts, monotonicMs } = reading;
  const reckoned = runOn(before.reckoned, reading);
  const aheadMs = ts - reckoned.ts;
  if (Math.abs(aheadMs) <= rules.toleranceMs) return believe(reading, 'back');
  const isEndedByOthers = before.isShared && shared !== null && shared.doubtedTs === null;
  // The row is at most this old. If the clock disagrees with what others believe, it is doubted again.
  if (isEndedByOthers && isWithin(ts - shared.reckonedTs, 2 * rules.writeEveryMs))
    return believe(reading, 'shared');
  const expected = runOn(before.last, reading);
  const isSteady =
    Math.abs(ts - expected.ts) <= rules.toleranceMs &&
    reading.suspendedMs - before.last.suspendedMs <= rules.toleranceMs;
  const steadySinceMs = isSteady ? before.steadySinceMs : monotonicMs;
  if (monotonicMs - steadySinceMs >= rules.steadyMs && aheadMs <= rules.awayMs)
    return believe(reading, 'steady');
  const isWritten = shared !== null && shared.doubtedTs !== null;
  const belief = {
    ...before,
    reckoned,
    last: clocksOf(reading),
    steadySinceMs,
    isShared: isWritten,
  };
  const row = { reckonedTs: reckoned.ts, doubtedTs: before.doubtedTs };
  if (!isWritten) return { belief, write: { kind: 'doubt', shared: row }, change: null };
  const isOld = reckoned.ts - shared.reckonedTs >= rules.writeEveryMs;
  return { belief, write: isOld ? { kind: 'advance', shared: row } : null, change: null };
}

function believe(reading: Reading, reason: BeliefReason | null): Judgement {
  const { shared, ts } = reading;
  const row = { reckonedTs: ts, doubtedTs: null };
  const isDoubtWritten = shared !== null && shared.doubtedTs !== null;
  const isOld = shared === null || ts - shared.reckonedTs >= rules.writeEveryMs;
  const kind = isDoubtWritten ? 'believe' : reason !== null || isOld ? 'advance' : null;
  return {
    belief: { isDoubted: false, at: clocksOf(reading) },
    write: kind && { kind, shared: row },
    change: reason && { to: 'believed', reason },
  };
}

function doubt(reading: Reading, reckoned: Clocks, reason: DoubtReason): Judgement {
  const { shared, monotonicMs } = reading;
  const doubtedTs = shared?.doubtedTs ?? reckoned.ts;
  const isShared = shared !== null && shared.doubtedTs !== null;
  const row = { reckonedTs: reckoned.ts, doubtedTs };
  return {
    belief: {
      isDoubted: true,
      doubtedTs,
      reckoned,
      last: clocksOf(reading),
      steadySinceMs: monotonicMs,
      isShared,
    },
    write: isShared ? null : { kind: 'doubt', shared: row },
    change: { to: 'doubted', reason, aheadMs: reading.ts - reckoned.ts },
  };
}

/** Where a clock should be if it advanced like the other two, including a suspend. */
function runOn(from: Clocks, { monotonicMs, suspendedMs }: Clocks): Clocks {
  const passedMs = monotonicMs - from.monotonicMs + Math.max(0, suspendedMs - from.suspendedMs);
  return { ts: from.ts + passedMs, monotonicMs, suspendedMs };
}

const clocksOf = ({ ts, monotonicMs, suspendedMs }: Clocks): Clocks => ({
  ts,
  monotonicMs,
  suspendedMs,
});
