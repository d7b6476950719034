import { pause } from '../lib/wait.ts';
import type { Database } from './database.ts';
import { stateOf, states } from './errors.ts';
import type { Sql } from './sql.ts';

/**
 * Why messages of devices cannot be stored:
 * - `standby-away`: commits wait for a synchronous standby.
 * - `read-only`: the server is a standby, or allows this role only to read.
 * - `locked`: a session holds a lock on a table that every message needs.
 * - `slow`: a commit does not return, and the server does not say what it waits for.
 * - `disk-full`: the server has no disk space for its log.
 * - `refused`: the server answers with another error.
 */
export type WriteFailure = {
  reason: 'standby-away' | 'read-only' | 'locked' | 'slow' | 'disk-full' | 'refused';
  /** The sessions that hold the lock. */
  blockers?: Blocker[];
  err?: unknown;
};

/** A session that others wait for. */
type Blocker = { pid: number; application: string; user: string; state: string };

export type WriteProbe = {
  /** Tries a commit. Null if it succeeds; `unknown` if the server does not answer at all. */
  probe(): Promise<WriteFailure | null | 'unknown'>;
  /** Ends a commit that hangs. */
  close(): void;
};

type WriteProbeDeps = {
  /**
   * Opens one connection that nothing else uses and that waits for answers without a limit, so that the probe can look
   * up what a commit waits for.
   */
  open: () => Database;
  /** Another connection, for looking at a statement that hangs. */
  look: Sql;
  /** A commit that takes longer counts as hanging, ms. */
  patienceMs?: number;
};

type Result = Awaited<ReturnType<WriteProbe['probe']>>;

/** The tables that every message of a device writes or locks. */
const neededTables = ['device', 'device_state', 'series', 'measurement', 'event'];

/**
 * Tries what every message needs: locks that do not conflict with each other, and a commit that reaches the log and the
 * synchronous standby, if there is one. It changes no row. If a commit has not returned, the next probe looks at it
 * again.
 */
export function createWriteProbe({ open, look, patienceMs = 4_000 }: WriteProbeDeps): WriteProbe {
  let db = open();
  let pid = 0;
  /** The attempt under way, and why it hangs. */
  let trying: Promise<Result> | null = null;
  let known: Result = null;

  async function attempt(): Promise<Result> {
    const own = db;
    try {
      await own.transaction(async (tx) => {
        const { rows } = await tx.query<{ pid: number; isReadOnly: boolean }>(
          `select pg_backend_pid() as pid, current_setting('transaction_read_only')::boolean as "isReadOnly"`,
        );
        pid = rows[0]?.pid ?? 0;
        if (rows[0]?.isReadOnly) throw new ReadOnly();
        const tables = neededTables.map((table) => `only ${table}`).join(', ');
        await tx.query(`lock table ${tables} in row exclusive mode`);
      });
      known = null;
      return null;
    } catch (error) {
      return explain(error);
    } finally {
      if (own === db) trying = null;
    }
  }

  function explain(error: unknown): Result {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    const state = stateOf(cause);
    if (error instanceof ReadOnly || state === states.readOnly) return { reason: 'read-only' };
    if (state === states.diskFull) return { reason: 'disk-full' };
    // It was cancelled after the probe had seen it hang.
    if (known && state === states.queryCanceled) return known;
    return /^[0-9A-Z]{5}$/.test(state) && !/^(08|57P)/.test(state)
      ? { reason: 'refused', err: cause }
      : 'unknown';
  }

  async function diagnose(): Promise<Result> {
    const waiting = await findWaiting(look, pid).catch(() => undefined);
    if (waiting === undefined) return 'unknown';
    // The server waits for us, or the session has ended: what we sent has not arrived.
    if (waiting === null || waiting.event === 'ClientRead') {
      void db.close(0);
      db = open();
      trying = null;
      return 'unknown';
    }
    if (waiting.event === 'SyncRep') return { reason: 'standby-away' };
    if (waiting.type === 'Lock') return { reason: 'locked', blockers: waiting.blockers };
    return { reason: 'slow' };
  }

  return {
    async probe() {
      const over = new AbortController();
      const current = (trying ??= attempt());
      const late = pause(patienceMs, over.signal).then(async () =>
        over.signal.aborted ? null : (known = await diagnose()),
      );
      try {
        return await Promise.race([current, late]);
      } finally {
        over.abort();
      }
    },
    close: () => void db.close(0),
  };
}

class ReadOnly extends Error {}

type Waiting = { type: string | null; event: string | null; blockers: Blocker[] };

/** What a session waits for, and which sessions block it. */
async function findWaiting(sql: Sql, pid: number): Promise<Waiting | null> {
  const { rows } = await sql.query<Waiting>(
    `select wait_event_type as type, wait_event as event,
            coalesce((select json_agg(json_build_object('pid', pid, 'application', application_name,
                                                        'user', usename, 'state', state))
                        from pg_stat_activity
                       where pid = any(pg_blocking_pids($1))), '[]') as blockers
       from pg_stat_activity
      where pid = $1`,
    [pid],
  );
  return rows[0] ?? null;
}
