import pg from 'pg';
import { backoffMs, pause } from '../lib/wait.ts';
import { isUnavailable } from './errors.ts';
import type { Sql } from './sql.ts';

/**
 * Ends sessions in the server. A session whose commit waits for a synchronous standby or for a disk does not notice
 * that its client has closed the connection. It stays, keeps its locks, and counts against `max_connections`. Without
 * this, such sessions would use up all connections of the server within minutes.
 */
export type GivenUpSessions = {
  /**
   * Ends this session in the server, and resolves when it is gone. Until then it repeats the attempt, even if the
   * server does not answer, because such a server would not accept a new connection either. Never rejects.
   */
  end(session: string): Promise<void>;
  /** From now on tries once for each session, and does not wait for a server that is away. */
  close(): Promise<void>;
};

type GivenUpSessionsOptions = {
  connectionString: string;
  applicationName?: string | undefined;
  /** How long to wait for an answer, ms. */
  answerMs: number;
};

/** Process IDs are reused, on a server that has taken over too. With its start time, one identifies a session. */
const sessionKey = `pid || ' ' || extract(epoch from backend_start)`;

/** The key that `GivenUpSessions.end` takes. A pooler in between reports other process IDs than the server's. */
export async function findSessionKey(sql: Sql): Promise<string> {
  const { rows } = await sql.query<{ key: string }>(
    `select ${sessionKey} as key from pg_stat_get_activity(pg_backend_pid())`,
  );
  return rows[0]?.key ?? '';
}

const delays = { firstMs: 20, maxMs: 1_000 };

export function createGivenUpSessions(options: GivenUpSessionsOptions): GivenUpSessions {
  const closing = new AbortController();
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  let working: Promise<void> | null = null;

  /** Uses one connection for all sessions that are given up meanwhile. */
  async function work(): Promise<void> {
    let client: pg.Client | null = null;
    for (let rounds = 1; waiting.size > 0; rounds += 1) {
      const asked = [...waiting.keys()];
      let left: ReadonlySet<string>;
      try {
        client ??= await connect(options);
        left = await terminate(client, asked);
      } catch (error) {
        discard(client);
        client = null;
        // A role that may not end its sessions keeps them, but they must not delay the caller.
        left = new Set(isUnavailable(error) ? asked : []);
      }
      const isLast = closing.signal.aborted;
      for (const session of asked) if (isLast || !left.has(session)) settle(session);
      if (waiting.size > 0) await pause(backoffMs(rounds, delays), closing.signal);
    }
    // Set synchronously: a session that is given up after this starts new work.
    working = null;
    discard(client);
  }

  function settle(session: string): void {
    waiting.get(session)?.resolve();
    waiting.delete(session);
  }

  return {
    end(session) {
      const known = waiting.get(session);
      if (known) return known.promise;
      const one = Promise.withResolvers<void>();
      waiting.set(session, one);
      working ??= work();
      return one.promise;
    },
    async close() {
      closing.abort();
      await working;
    },
  };
}

async function connect({
  connectionString,
  applicationName,
  answerMs,
}: GivenUpSessionsOptions): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString,
    ...(applicationName ? { application_name: applicationName } : {}),
    connectionTimeoutMillis: answerMs,
    query_timeout: answerMs,
  });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Returns the sessions that still existed when they were told to end. */
async function terminate(client: pg.Client, sessions: string[]): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ key: string }>(
    `select ${sessionKey} as key, pg_terminate_backend(pid)
       from pg_stat_activity
      where ${sessionKey} = any($1::text[])`,
    [sessions],
  );
  return new Set(rows.map(({ key }) => key));
}

function discard(client: pg.Client | null): void {
  // A server that does not answer does not confirm the end either.
  void client?.end().catch(() => undefined);
}
