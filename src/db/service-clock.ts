import type { Clock, MonotonicClock } from '../lib/clock.ts';
import { pause } from '../lib/wait.ts';
import type { Sql } from './sql.ts';

export type ServiceClockOptions = {
  db: Sql;
  monotonicClock: MonotonicClock;
  /** Between two questions, in ms. */
  askEveryMs?: number;
  /** The database did not answer; the clock runs on by itself, and it is asked again. */
  onError: (error: unknown) => void;
  /** The database's clock was set, or is another one's now: by so many ms. */
  onMoved: (byMs: number) => void;
};

export type ServiceClock = {
  /** The service's time of day, ms. It jumps where the database's clock does. */
  now: Clock;
  close(): Promise<void>;
};

/** A difference that is no drift of clocks, and not what an answer takes. */
const movedMs = 1_000;
/** The first answer waits for its connection, in a process that has much to do: one of a few is more exact. */
const exactMs = 50;
const firstQuestions = 5;

/** Between these is the database's time less the process's: how far they are apart is how long an answer took. */
type Answer = { least: number; most: number };
const tookMs = ({ least, most }: Answer) => most - least;

/**
 * The database's clock, which all processes have in common, run on by the process's own between two questions.
 * Rejects where the database does not answer at first.
 */
export async function startServiceClock(options: ServiceClockOptions): Promise<ServiceClock> {
  const { db, monotonicClock, askEveryMs = 10_000, onError, onMoved } = options;
  const stopping = new AbortController();
  /** The database's time less the process's. */
  let offsetMs = Number.NaN;

  async function ask(): Promise<Answer> {
    const askedMs = monotonicClock();
    const ts = await readTime(db);
    return { least: ts - monotonicClock(), most: ts - askedMs };
  }

  async function begin(): Promise<void> {
    let best = await ask();
    for (let asked = 1; asked < firstQuestions && tookMs(best) > exactMs; asked += 1) {
      const next = await ask();
      if (tookMs(next) < tookMs(best)) best = next;
    }
    offsetMs = (best.least + best.most) / 2;
  }

  /** Within what an answer leaves open the clock stays as it is. */
  async function adjust(): Promise<void> {
    const { least, most } = await ask();
    const before = offsetMs;
    offsetMs = Math.min(most, Math.max(least, before));
    if (Math.abs(offsetMs - before) >= movedMs) onMoved(Math.round(offsetMs - before));
  }

  async function run(): Promise<void> {
    for (;;) {
      await pause(askEveryMs, stopping.signal);
      if (stopping.signal.aborted) return;
      await adjust().catch(onError);
    }
  }

  await begin();
  const running = run();
  return {
    now: () => Math.floor(monotonicClock() + offsetMs),
    async close() {
      stopping.abort();
      await running;
    },
  };
}

async function readTime(db: Sql): Promise<number> {
  const { rows } = await db.query<{ ts: number }>(
    'select extract(epoch from service_now())::float8 * 1000 as ts',
  );
  return rows[0]?.ts ?? Number.NaN;
}
