import pg from 'pg';
import { backoffMs, pause } from '../lib/wait.ts';
import { isUnavailable } from './errors.ts';
import type { Sql } from './sql.ts';

/**
 * Ends sessions in the server. One whose commit waits for a synchronous standby, or for a disk, does not notice that its
 * client has closed the connection: it stays, keeps its locks, and counts against `max_connections`. Given up one after
 * the other, such sessions would use up all connections of the server within minutes.
 */
export type GivenUpSessions = {
  /**
   * Has the server end this session; resolves when it has. Asks again until then, also where the server does not answer:
   * it would not take a new connection either. Never rejects.
   */
  end(session: string): Promise<void>;
  /** From now on asks once for each session, and does not wait for the answer of a server that is away. */
  close(): Promise<void>;
};

type GivenUpSessionsOptions = {
  connectionString: string;
  applicationName?: string | undefined;
  /** How long an answer is waited for, ms. */
  answerMs: number;
};

/** A process ID is used again, also by another server that has taken over: with its start it names one session. */
const sessionKey = `pid || ' ' || extract(epoch from backend_start)`;

/** What `GivenUpSessions.end` takes. A pooler in between tells clients other process IDs than the server's. */
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

  /** Over one connection for all that are given up meanwhile. */
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
        // A role that may not end its sessions has them, but they must not stop it.
        left = new Set(isUnavailable(error) ? asked : []);
      }
      const isLast = closing.signal.aborted;
      for (const session of asked) if (isLast || !left.has(session)) settle(session);
      if (waiting.size > 0) await pause(backoffMs(rounds, delays), closing.signal);
    }
    // At once: what is given up from here on begins anew.
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

/** Gives those that were there when they were told to end. */
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
  // A server that does not answer does not say goodbye either.
  void client?.end().catch(() => undefined);
}
