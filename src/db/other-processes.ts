import type { Sql } from './sql.ts';

export type OtherProcessesDeps = {
  db: Sql;
  /** Milliseconds that only go forward. */
  nowMs: () => number;
};

/** Knows whether other processes of the service keep the database busy. */
export type OtherProcesses = {
  /** Asked often; true too until that was looked at, and where the database is slow to say. */
  areBusy(): boolean;
  close(): void;
};

/** What names connections of the service's processes; each adds a part of its own. */
const prefix = 'sensorium-';
/** The application name of a process's connections. `unique`: a part that no other process has. */
export const processName = (unique: string): string => `${prefix}${unique}`;

/** How often it is looked at, how long one that was busy counts as such, and how old the last answer may be. */
const lookEveryMs = 100;
const quietMs = 250;
const freshMs = 500;
/** Nobody has asked for so long: it is not looked at any more. */
const unaskedMs = 1_000;

/** Looks at the database's sessions while somebody asks, and costs nothing else. */
export function watchOtherProcesses({ db, nowMs }: OtherProcessesDeps): OtherProcesses {
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
      lookedMs = nowMs();
      if (isBusy) busyMs = lookedMs;
    } catch {
      // The database is away: the answer gets old, which counts as busy.
    } finally {
      isLooking = false;
    }
  }

  function tick(): void {
    if (nowMs() - askedMs > unaskedMs) return close();
    void look();
  }

  function close(): void {
    if (timer) clearInterval(timer);
    timer = null;
  }

  return {
    areBusy() {
      askedMs = nowMs();
      if (!timer) {
        timer = setInterval(tick, lookEveryMs).unref();
        void look();
      }
      return askedMs - lookedMs > freshMs || askedMs - busyMs < quietMs;
    },
    close,
  };
}

/** Whether a session of another process, in this database, has a statement or a transaction under way. */
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
