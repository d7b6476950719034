import { uptime } from 'node:os';
import type { Clock, MonotonicClock, WallMs } from '../lib/clock-readings.ts';
import type { Sql } from '../db/sql.ts';
import { pause } from '../lib/wait.ts';
import { judge, reckon, type Belief, type Judgement } from './belief.ts';
import { noteSettled, readDatabaseTime, writeBelief, type DatabaseTime } from './believed-time.ts';

export type ServiceClockOptions = {
  db: Sql;
  monotonicClock: MonotonicClock;
  /** How long the machine has been suspended since it started, ms; of this machine where absent. */
  suspendedMs?: () => number;
  /** Between two questions, in ms. */
  askEveryMs?: number;
  /** The database did not answer; the clock runs on by itself, and it is asked again. */
  onError: (error: unknown) => void;
  /** The database's clock was set, or is another one's now: by so many ms. */
  onMoved: (byMs: number) => void;
  /**
   * Brings back what the clock wrote while it was ahead. Called once it is believed again, and once more after
   * `spanKeptMs`: what was under way then is written by now. Absent: nothing is.
   */
  bringBack?: (nowTs: WallMs) => Promise<void>;
  /** The clock is in doubt from now on, or believed again. */
  onChange: (change: NonNullable<Judgement['change']>) => void;
};

/** Time as it may be deleted by, and how far it is from the clock where that is in doubt. */
export type BelievedTime = {
  /** The service's time; null while its clock is in doubt. What deletes by time asks this, and waits on null. */
  believedTs: () => WallMs | null;
  /**
   * Where the clock should be less where it is, ms: 0 while it is believed. What was sent under one of the two
   * is judged by both, also for `spanKeptMs` after the doubt: it may have waited.
   */
  doubtSpanMs: () => number;
};

type ServiceClock = BelievedTime & {
  /** The service's time of day, ms. It jumps where the database's clock does. */
  now: Clock;
  close(): Promise<void>;
};

/** A clock that is believed always: tests run the whole service by clocks of their own. */
export const believe = (clock: Clock): BelievedTime => ({
  believedTs: clock,
  doubtSpanMs: () => 0,
});

/** A difference that is no drift of clocks, and not what an answer takes. */
const movedMs = 1_000;
/** The first answer waits for its connection, in a process that has much to do: one of a few is more exact. */
const exactMs = 50;
const firstQuestions = 5;
/** Longer than a message waits for its commit. */
const spanKeptMs = 10 * 60_000;

/** Between these is the database's time less the process's: how far they are apart is how long an answer took. */
type Answer = Pick<DatabaseTime, 'shared' | 'isUnsettled'> & { least: number; most: number };
const tookMs = ({ least, most }: Answer) => most - least;

/**
 * The database's clock, which all processes have in common, run on by the process's own between two questions; and
 * whether it may be believed. Rejects where the database does not answer at first.
 */
export async function startServiceClock(options: ServiceClockOptions): Promise<ServiceClock> {
  const { db, monotonicClock, askEveryMs = 10_000, onError, onMoved, onChange } = options;
  const { suspendedMs = () => uptime() * 1_000 - monotonicClock() } = options;
  const stopping = new AbortController();
  /** The database's time less the process's. */
  let offsetMs = Number.NaN;
  let belief: Belief | null = null;
  let span = { ms: 0, untilMs: -Infinity };
  /** When what the clock wrote while it was ahead was brought back first; null: it is to be. */
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
    // It is written again with the next answer.
    await consider(best).catch(onError);
  }

  /** Within what an answer leaves open the clock stays as it is. */
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

  /** Judges before anything goes by the new time: there is no `await` between the two. */
  function consider({ shared }: Answer): Promise<void> {
    const monotonicMs = monotonicClock();
    const reading = { ts: monotonicMs + offsetMs, monotonicMs, suspendedMs: suspendedMs(), shared };
    const judged = judge(belief, reading);
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
