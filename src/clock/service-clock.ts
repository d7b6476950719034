import { uptime } from 'node:os';
import type { Clock, MonotonicClock, WallMs } from '../lib/clock-readings.ts';
import type { Sql } from '../db/sql.ts';
import { pause } from '../lib/wait.ts';
import { judgeReading, reckon, type Belief, type Judgement } from './belief.ts';
import { noteSettled, readDatabaseTime, writeBelief, type DatabaseTime } from './believed-time.ts';

export type ServiceClockOptions = {
  db: Sql;
  monotonicClock: MonotonicClock;
  /** How long the machine has been suspended since it started, ms; absent: this machine's value. */
  suspendedMs?: () => number;
  /** Time between two queries, ms. */
  askEveryMs?: number;
  /** The database did not answer. The clock continues by itself, and the query is repeated. */
  onError: (error: unknown) => void;
  /** The database's clock was set, or another server's clock is used now: it changed by this much. */
  onMoved: (byMs: number) => void;
  /**
   * Corrects times that the clock wrote while it was ahead. Called once the clock is believed again, and once more
   * after `spanKeptMs`, when everything that was under way has been written. Absent: nothing is corrected.
   */
  bringBack?: (nowTs: WallMs) => Promise<void>;
  /** The clock is in doubt from now on, or is believed again. */
  onChange: (change: NonNullable<Judgement['change']>) => void;
};

/** The time for deletions, and how far it is from the clock while that is in doubt. */
export type BelievedTime = {
  /**
   * The service's time; null while its clock is in doubt. Whatever deletes by time uses this, and waits while it is
   * null.
   */
  believedTs: () => WallMs | null;
  /**
   * Where the clock should be minus where it is, ms; 0 while it is believed. Times sent under either of the two are
   * judged by both, for `spanKeptMs` after the doubt too, because messages may have waited.
   */
  doubtSpanMs: () => number;
};

type ServiceClock = BelievedTime & {
  /** The service's time of day, ms. It jumps when the database's clock does. */
  now: Clock;
  close(): Promise<void>;
};

/** A clock that is always believed: tests run the whole service with clocks of their own. */
export const believe = (clock: Clock): BelievedTime => ({
  believedTs: clock,
  doubtSpanMs: () => 0,
});

/** A difference too large for clock drift or the time of an answer. */
const movedMs = 1_000;
/** The first answer includes opening the connection, in a busy process. The best of a few is more exact. */
const exactMs = 50;
const firstQuestions = 5;
/** Longer than a message waits for its commit. */
const spanKeptMs = 10 * 60_000;

/** The database's time minus the process's lies between these. Their difference is how long the answer took. */
type Answer = Pick<DatabaseTime, 'shared' | 'isUnsettled'> & { least: number; most: number };
const tookMs = ({ least, most }: Answer) => most - least;

/**
 * The database's clock, which all processes share, advanced by the process's own clock between two queries. Also tracks
 * whether it is believed. Rejects if the database does not answer the first query.
 */
export async function startServiceClock(options: ServiceClockOptions): Promise<ServiceClock> {
  const { db, monotonicClock, askEveryMs = 10_000, onError, onMoved, onChange } = options;
  const { suspendedMs = () => uptime() * 1_000 - monotonicClock() } = options;
  const stopping = new AbortController();
  /** The database's time minus the process's. */
  let offsetMs = Number.NaN;
  let belief: Belief | null = null;
  let span = { ms: 0, untilMs: -Infinity };
  /** When times written ahead were first corrected; null: not yet. */
  let broughtBackMs: number | null = null;

  async function ask(): Promise<Answer> {
    const askedMs = monotonicClock();
    const { ts, shared, isUnsettled } = await readDatabaseTime(db);
    return { least: ts - monotonicClock(), most: ts - askedMs, shared, isUnsettled };
  }

  async function begin(): Promise<void> {
    let best = await ask();
    for (let asked = 1; asked < firstQuestions && tookMs(best) > exactMs; asked += 1) {
      const next = await ask();
      if (tookMs(next) < tookMs(best)) best = next;
    }
    offsetMs = (best.least + best.most) / 2;
    // If this write fails, the next answer repeats it.
    await consider(best).catch(onError);
  }

  /** While the clock is within the uncertainty of an answer, it is not adjusted. */
  async function adjust(): Promise<void> {
    const answer = await ask();
    const before = offsetMs;
    offsetMs = Math.min(answer.most, Math.max(answer.least, before));
    const writing = consider(answer);
    if (Math.abs(offsetMs - before) >= movedMs) onMoved(Math.round(offsetMs - before));
    await writing;
    if (answer.isUnsettled) await settle();
  }

  async function settle(): Promise<void> {
    const { bringBack } = options;
    if (belief?.isDoubted !== false) broughtBackMs = null;
    else if (broughtBackMs === null) {
      await bringBack?.(now());
      broughtBackMs = monotonicClock();
    } else if (monotonicClock() - broughtBackMs >= spanKeptMs) {
      await bringBack?.(now());
      await noteSettled(db);
      broughtBackMs = null;
    }
  }

  /** Judges the clock before anything uses the new time: there is no `await` in between. */
  function consider({ shared }: Answer): Promise<void> {
    const monotonicMs = monotonicClock();
    const reading = { ts: monotonicMs + offsetMs, monotonicMs, suspendedMs: suspendedMs(), shared };
    const judged = judgeReading(belief, reading);
    belief = judged.belief;
    if (belief.isDoubted)
      span = { ms: reckon(belief, monotonicMs) - reading.ts, untilMs: monotonicMs + spanKeptMs };
    if (judged.change) onChange(judged.change);
    return judged.write ? writeBelief(db, judged.write) : Promise.resolve();
  }

  async function run(): Promise<void> {
    for (;;) {
      await pause(askEveryMs, stopping.signal);
      if (stopping.signal.aborted) return;
      await adjust().catch(onError);
    }
  }

  const now = () => Math.floor(monotonicClock() + offsetMs);
  await begin();
  const running = run();
  return {
    now,
    believedTs: () => (belief?.isDoubted === false ? now() : null),
    doubtSpanMs: () => (monotonicClock() < span.untilMs ? Math.round(span.ms) : 0),
    async close() {
      stopping.abort();
      await running;
    },
  };
}
