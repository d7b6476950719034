import type { Sql } from '../db/sql.ts';
import { addCounts, listRecorded, type Counts } from './activity-queries.ts';
import { eventsBurst, type EventRate } from './event-rate.ts';
import type { LimitsOf } from './overrides.ts';

/** Counts what accounts' devices do, in this process, and knows what the others have counted. */
export type Activity = {
  count(accountId: number, counts: Counts): void;
  /** How many more events of the account may be recorded today (UTC). */
  eventsLeft(accountId: number): number;
  /** Writes what was counted; called every few seconds, and once more at the end. */
  flush(): Promise<void>;
  close(): Promise<void>;
};

export type ActivityOptions = {
  db: Sql;
  limitsOf: LimitsOf;
  clock: () => number;
  /** One run of this process: its counts are rows of their own. */
  runUuid: string;
  intervalMs?: number;
  onError: (error: unknown) => void;
};

/**
 * Each process has a row of its own an account and day: one row that all share, written with every
 * message, would have all of them wait for each other. So others' counts are known some seconds late, and
 * a process that is killed takes those of some seconds with it.
 */
export async function startActivity(options: ActivityOptions): Promise<Activity> {
  const { db, limitsOf, clock, runUuid, intervalMs = 5_000, onError } = options;
  // oxlint-disable-next-line no-restricted-globals -- a given time
  const today = () => new Date(clock()).toISOString().slice(0, 10);
  let day = today();
  /** Recorded today, as written by all processes, and on its way there from this one. */
  let recorded = await listRecorded(db, day, null);
  let pending = new Map<number, Counts>();

  function add(accountId: number, counts: Counts): void {
    const sum = pending.get(accountId);
    if (!sum) {
      pending.set(accountId, { ...counts });
      return;
    }
    sum.measurements += counts.measurements;
    sum.events += counts.events;
    sum.leftOut += counts.leftOut;
  }

  function move(accountId: number, events: number): void {
    recorded.set(accountId, (recorded.get(accountId) ?? 0) + events);
  }

  function turnDay(): void {
    const now = today();
    if (now === day) return;
    day = now;
    recorded = new Map();
  }

  async function write(): Promise<void> {
    turnDay();
    if (pending.size === 0) return;
    const [writing, of] = [pending, day];
    pending = new Map();
    for (const [accountId, { events }] of writing) move(accountId, events);
    try {
      await addCounts(db, runUuid, of, writing);
    } catch (error) {
      for (const [accountId, counts] of writing) {
        move(accountId, -counts.events);
        add(accountId, counts);
      }
      throw error;
    }
    const known = await listRecorded(db, of, [...writing.keys()]);
    if (of === day) for (const [accountId, events] of known) recorded.set(accountId, events);
  }

  let writing = Promise.resolve();
  const flush = () => (writing = writing.then(write).catch(onError));
  const timer = setInterval(() => void flush(), intervalMs);
  timer.unref();

  return {
    count: add,
    eventsLeft(accountId) {
      turnDay();
      const { eventsPerDay } = limitsOf(accountId);
      const counted = (recorded.get(accountId) ?? 0) + (pending.get(accountId)?.events ?? 0);
      return Math.max(0, eventsPerDay - counted);
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

/** What ingest counts accounts' events with: those of a day, and of a second. */
export function createEventCounters(
  activity: Pick<Activity, 'count' | 'eventsLeft'>,
  rate: Pick<EventRate, 'left' | 'take'>,
  limitsOf: LimitsOf,
) {
  return {
    eventsLeft: activity.eventsLeft,
    eventsLeftNow: rate.left,
    eventsPerMessage: (accountId: number) => eventsBurst(limitsOf(accountId).eventsPerSecond),
    /** Of a commit; `events` are sense events, `moves` the others, `alarms` those that opened. */
    count(accountId: number, counts: Counts & { moves: number; alarms: number }): void {
      const { measurements, leftOut, moves, alarms } = counts;
      const events = counts.events + alarms;
      activity.count(accountId, { measurements, events, leftOut });
      if (events + moves > 0) rate.take(accountId, events + moves);
    },
  };
}
