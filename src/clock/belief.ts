import type { MonotonicMs } from '../lib/clock-readings.ts';

/*
 * Whether the service's clock may be believed. Pure: the edge (service-clock.ts) reads the clock every ten
 * seconds, hands each reading to `judge`, and writes what it says to the row that all processes share.
 *
 * A clock is believed while it goes on as the monotonic clock does. Once it does not, it is in doubt, and
 * nothing is deleted by it: history that a leap forward made look old would be gone for good. What needs no
 * belief goes on by the clock as it is: messages are stored, tokens expire, ticks run.
 */

const minuteMs = 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;

const rules = {
  /** As far as a clock may be from where it should be. */
  toleranceMs: 2_000,
  /** As far ahead as it may be where nothing counted the time: at a start, after a suspend, or after `steadyMs`. */
  awayMs: 2 * dayMs,
  /** A clock in doubt that has gone on with the monotonic clock for this long is believed again. */
  steadyMs: hourMs,
  /** How often the row is brought up to date. */
  writeEveryMs: minuteMs,
};

/** The row that all processes of a database share. */
export type SharedBelief = {
  /** The time that was last believed; in doubt: plus what has passed since by a monotonic clock, ms. */
  reckonedTs: number;
  /** When the doubt began, by `reckonedTs`; null: the clock is believed. */
  doubtedTs: number | null;
};

/** A look at the clocks, and at the row. */
type Reading = {
  /** What the clock says, ms. */
  ts: number;
  monotonicMs: MonotonicMs;
  /** How long the machine has been suspended since it started: the monotonic clock stands still meanwhile. */
  suspendedMs: number;
  /** Null: no process has written it yet. */
  shared: SharedBelief | null;
};

/** `start`, `leap`: found here. `shared`: another process found it, and wrote it down. */
type DoubtReason = 'start' | 'leap' | 'shared';

/** `back`: the clock is where it should be. `steady`: it went on for an hour. `shared`: by another one, or by the operator. */
type BeliefReason = 'back' | 'steady' | 'shared';

type Clocks = Pick<Reading, 'ts' | 'monotonicMs' | 'suspendedMs'>;

/** What a process knows. */
export type Belief =
  | { isDoubted: false; at: Clocks }
  | {
      isDoubted: true;
      doubtedTs: number;
      /** Where the clock should be: `ts` at the other two clocks. */
      reckoned: Clocks;
      /** The last reading, and since when the clock has gone on with the monotonic one. */
      last: Clocks;
      steadySinceMs: number;
      /** The row says so too: from then on it may also end the doubt. */
      isShared: boolean;
    };

export type Judgement = {
  belief: Belief;
  /** To be written: a doubt that begins, one that ends, or how far time has come. */
  write: { kind: 'doubt' | 'believe' | 'advance'; shared: SharedBelief } | null;
  /** What changed; null: nothing. */
  change:
    | { to: 'doubted'; reason: DoubtReason; aheadMs: number }
    | { to: 'believed'; reason: BeliefReason }
    | null;
};

/** Judges the clock by a reading. `before`: null at the start of a process. */
export function judge(before: Belief | null, reading: Reading): Judgement {
  if (before === null) return judgeStart(reading);
  return before.isDoubted ? judgeDoubted(before, reading) : judgeBelieved(before.at, reading);
}

/** Where the clock should be, ms, for what only knows the monotonic clock. */
export function reckon(belief: Belief, monotonicMs: MonotonicMs): number {
  const from = belief.isDoubted ? belief.reckoned : belief.at;
  return from.ts + monotonicMs - from.monotonicMs;
}

/** How far ahead of `reckonedTs` this is, and whether it may be believed. `awayMs`: time that nothing counted. */
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
  // A machine that wakes has counted how long it slept, but the clock may be another machine's.
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
  // As fresh as the row is at most. What others believe, but the clock no longer says, is doubted anew.
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

/** Where a clock should be that went on from there as the others did, a suspend included. */
function runOn(from: Clocks, { monotonicMs, suspendedMs }: Clocks): Clocks {
  const passedMs = monotonicMs - from.monotonicMs + Math.max(0, suspendedMs - from.suspendedMs);
  return { ts: from.ts + passedMs, monotonicMs, suspendedMs };
}

const clocksOf = ({ ts, monotonicMs, suspendedMs }: Clocks): Clocks => ({
  ts,
  monotonicMs,
  suspendedMs,
});
