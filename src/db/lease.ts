import { createHash } from 'node:crypto';
import pg from 'pg';
import { pause } from '../lib/wait.ts';
import { withTimeout } from './database.ts';
import type { Sql } from './sql.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

/**
 * Keep `askMs + answerMs` well below `forgetMs`: a holder must notice the loss before another process gets the lease.
 */
type LeasePace = {
  /** Time between two queries: a waiting process tries to get the lease, the holder checks that it still has it. */
  askMs: number;
  /** The holder gives up the lease if an answer takes longer. */
  answerMs: number;
  /** PostgreSQL ends the session of a holder that has been silent for this long. */
  forgetMs: number;
};

type LeaseOptions = {
  connectionString: string;
  /** The name of the lease, which one process at a time holds. */
  name: string;
  /** Shown to operators in pg_stat_activity. */
  holder: string;
  onHeld: () => void;
  /** The lease was lost, and another process may get it. Not called after a release. */
  onLost: () => void;
  /** Another process holds the lease. Called once until this one holds it. */
  onWaiting?: () => void;
  /** The database is away. Called once; attempts continue. */
  onError: (error: unknown) => void;
  pace?: LeasePace;
};

type DatabaseLease = {
  /** Releases the lease for others, and does not compete until `compete`. */
  rest(): void;
  compete(): void;
  /** Whether the database answered the last query. */
  isThere(): boolean;
  /** Stops competing. A held lease is released when `finish` has settled. */
  release(finish: () => Promise<void>): Promise<void>;
};

const usualPace: LeasePace = { askMs: 500, answerMs: 4_000, forgetMs: 10_000 };

/**
 * Competes for a lease until it is released. The lease is an advisory lock in a separate PostgreSQL session, and ends
 * with that session. Resolves after the first attempt. It polls, because a statement that waits in the server would
 * keep vacuum from removing rows.
 */
export async function startLease(options: LeaseOptions): Promise<DatabaseLease> {
  const { name, onHeld, onLost, onWaiting, onError, pace = usualPace } = options;
  const key = createHash('sha256').update(name).digest().readBigInt64BE().toString();
  const stopping = new AbortController();
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
  let isWanted = true;
  let isHeld = false;
  /** The session still has the lock, but this process no longer holds the lease, and must unlock it. */
  let isOwed = false;
  let isWaiting = false;
  let isAway = false;

  function lose(): void {
    if (!isHeld) return;
    isHeld = false;
    onLost();
  }

  function fail(error: unknown): void {
    if (!isAway) onError(error);
    isAway = true;
  }

  async function ask(client: pg.Client): Promise<void> {
    if (isOwed) {
      await withTimeout(client.query('select pg_advisory_unlock($1)', [key]), pace.answerMs);
      isOwed = false;
      return;
    }
    const wants = isWanted && !isHeld;
    const question = wants
      ? client.query<{ got: boolean }>('select pg_try_advisory_lock($1) as got', [key])
      : client.query<{ got: boolean }>('select false as got');
    const { rows } = await withTimeout(question, pace.answerMs);
    isAway = false;
    if (rows[0]?.got) take();
    else if (wants) wait();
  }

  function take(): void {
    isWaiting = false;
    // If the lease is no longer wanted, the next query releases it, or the end of the session does.
    isOwed = !isWanted;
    if (isOwed) return;
    isHeld = true;
    onHeld();
  }

  function wait(): void {
    if (!isWaiting && isWanted) onWaiting?.();
    isWaiting = true;
  }

  async function useOneSession(): Promise<void> {
    isOwed = false;
    const client = openSession(options, pace);
    const ended = new AbortController();
    const over = AbortSignal.any([ended.signal, stopping.signal]);
    client.on('error', fail);
    client.on('end', () => {
      ended.abort();
      lose();
    });
    try {
      await client.connect();
      while (!over.aborted) {
        await ask(client);
        onAsked();
        await pause(pace.askMs, over);
      }
    } finally {
      lose();
      // A server that does not answer does not close the connection either.
      await withTimeout(client.end(), pace.answerMs).catch(() => undefined);
    }
  }

  async function compete(): Promise<void> {
    while (!stopping.signal.aborted) {
      await useOneSession().catch(fail);
      onAsked();
      await pause(pace.askMs, stopping.signal);
    }
  }

  const competing = compete();
  await asked;
  return {
    rest() {
      isWanted = false;
      isWaiting = false;
      isOwed ||= isHeld;
      isHeld = false;
    },
    compete: () => void (isWanted = true),
    isThere: () => !isAway,
    async release(finish) {
      isWanted = false;
      try {
        await finish();
      } finally {
        isHeld = false;
        stopping.abort();
        await competing;
      }
    },
  };
}

function openSession({ connectionString, holder }: LeaseOptions, pace: LeasePace): pg.Client {
  return new pg.Client({
    connectionString,
    application_name: holder,
    connectionTimeoutMillis: pace.answerMs,
    // If the holder falls silent (its machine, network or process is dead), the server ends its session.
    options: `-c idle_session_timeout=${pace.forgetMs}`,
  });
}

type OtherProcessesDeps = {
  db: Sql;
  /** Milliseconds that only move forward. */
  monotonicClock: MonotonicClock;
};

/** Knows whether other processes of the service keep the database busy. */
type OtherProcesses = {
  /** Cheap to call often. Also true before the first look, and if the database is slow to answer. */
  areBusy(): boolean;
  close(): void;
};

/** The prefix of the connections' names of all processes of the service. */
const prefix = 'sensorium-';
/** The same for processes that know commands. Those of earlier versions have the prefix alone. */
const ownPrefix = `${prefix}2-`;
/** The application name of a process's connections. `unique`: a part that no other process has. */
export const processName = (unique: string): string => `${ownPrefix}${unique}`;

/** Whether a process of an earlier version, which does not know commands, is connected to this database. */
export async function hasEarlierProcess(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ has: boolean }>(
    `select exists (
       select from pg_stat_activity
        where datname = current_database()
          and starts_with(application_name, $1)
          and not starts_with(application_name, $2)
     ) as has`,
    [prefix, ownPrefix],
  );
  return rows[0]?.has === true;
}

/** How often to look, how long a busy process counts as busy, and how old the last answer may be. */
const lookEveryMs = 100;
const quietMs = 250;
const freshMs = 500;
/** Stop looking after nobody has asked for this long. */
const unaskedMs = 1_000;

/** Looks at the database's sessions only while somebody asks. */
export function watchOtherProcesses({ db, monotonicClock }: OtherProcessesDeps): OtherProcesses {
  let askedMs = -Infinity;
  let busyMs = -Infinity;
  let lookedMs = -Infinity;
  let isLooking = false;
  let timer: NodeJS.Timeout | null = null;

  async function look(): Promise<void> {
    if (isLooking) return;
    isLooking = true;
    try {
      const isBusy = await findOtherStatement(db);
      lookedMs = monotonicClock();
      if (isBusy) busyMs = lookedMs;
    } catch {
      // The database is away. The last answer gets old, which counts as busy.
    } finally {
      isLooking = false;
    }
  }

  function tick(): void {
    if (monotonicClock() - askedMs > unaskedMs) return close();
    void look();
  }

  function close(): void {
    if (timer) clearInterval(timer);
    timer = null;
  }

  return {
    areBusy() {
      askedMs = monotonicClock();
      if (!timer) {
        timer = setInterval(tick, lookEveryMs).unref();
        void look();
      }
      return askedMs - lookedMs > freshMs || askedMs - busyMs < quietMs;
    },
    close,
  };
}

/** Whether a session of another process has a statement or transaction under way in this database. */
async function findOtherStatement(db: Sql): Promise<boolean> {
  const { rows } = await db.query<{ busy: boolean }>(
    `select exists (
       select from pg_stat_activity
        where datname = current_database()
          and starts_with(application_name, $1)
          and application_name <> current_setting('application_name')
          and state <> 'idle'
     ) as busy`,
    [prefix],
  );
  return rows[0]?.busy ?? true;
}
