import pg from 'pg';
import { DomainError } from '../errors.ts';
import { toError } from '../lib/thrown.ts';
import { waitAtMost } from '../lib/wait.ts';
import type { Sql } from './sql.ts';
import {
  transaction,
  type Lender,
  type Transaction,
  type TransactionOptions,
} from './transaction.ts';
import { isUnavailable, kindOf, stateOf, states } from './errors.ts';
import {
  createGivenUpSessions,
  findSessionKey,
  type GivenUpSessions,
} from './given-up-sessions.ts';
import { failUnreplicated } from './pg-driver.ts';
import { searchPathFor } from './schema-name.ts';
import { optionsOf, sessionFormats, types } from './types.ts';

export type Database = Sql & {
  /** Commits what `work` did, or rolls back when it throws. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /**
   * Resolves when what was read before the call is as safe as a commit: also on the synchronous standby, where there is
   * one. For answers that say "it is there already", or "it is gone", and write nothing. However many ask, one commit
   * at a time is under way.
   */
  confirmReads(): Promise<void>;
  pool: pg.Pool;
  /**
   * Waits for what is under way, and closes the connections. Where that may take `withinMs` at most, what is still under
   * way after half of it is ended in the server, so that no session is left there.
   */
  close(withinMs?: number): Promise<void>;
};

export type DatabaseOptions = {
  connectionString: string;
  /** Where the tables are, as `migrate` said. */
  schema: string;
  maxConnections: number;
  connectTimeoutMs: number;
  /** Sent to the server: a statement that takes longer is cancelled there. */
  statementTimeoutMs: number;
  /** How long an answer is waited for on this side, ms; a second longer than a statement may take unless said. */
  answerTimeoutMs?: number;
  /** Statements of one transaction are sent without waiting for the answers to those before. */
  pipeline?: boolean;
  /**
   * Named statements are planned once, for any number of elements. By default PostgreSQL plans statements
   * with arrays again for each length, which for a few elements takes longer than the statement.
   */
  keepPlans?: boolean;
  /** What the server calls its connections, unless the connection string names them. */
  applicationName?: string;
  /** A transaction's commit has returned. */
  onCommitted?: () => void;
  /** A connection error outside any query; the pool replaces the connection by itself. */
  onIdleError: (error: Error) => void;
  /** A table was not where `schema` says; the statement fails with `unavailable`. */
  onMissingTable?: () => void;
};

/** Connects lazily: nothing is opened before the first query. */
export function openDatabase(options: DatabaseOptions): Database {
  const settings = {
    statement_timeout: options.statementTimeoutMs,
    ...sessionFormats,
    search_path: searchPathFor(options.schema),
    // Late data may touch any number of compressed rows. PostgreSQL without TimescaleDB accepts the setting
    // and ignores it.
    'timescaledb.max_tuples_decompressed_per_dml_transaction': 0,
    ...(options.applicationName ? { application_name: options.applicationName } : {}),
    ...(options.keepPlans ? { plan_cache_mode: 'force_generic_plan' } : {}),
  };
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.maxConnections,
    connectionTimeoutMillis: options.connectTimeoutMs,
    options: optionsOf(settings),
    // A server that stopped answering cannot cancel: give up on this side a little later.
    query_timeout: options.answerTimeoutMs ?? options.statementTimeoutMs + 1_000,
    types,
    // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it, which its types do not say
    onConnect: rememberSession,
    ...(options.pipeline ? { pipeline: true } : {}),
  });
  // The pool says that it is closed before its connections are: one that the server ends then is not lost.
  pool.on('error', (error) => {
    if (!pool.ending) options.onIdleError(error);
  });
  // A connection may end while a transaction holds it, between two statements: without a listener that
  // error would end the process. The next statement fails, which is enough.
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
    failUnreplicated(client);
  });
  const rethrow = (error: unknown): never => {
    if (isMissingTable(error)) options.onMissingTable?.();
    throw toDomain(error);
  };
  const { connectionString, applicationName, connectTimeoutMs: answerMs } = options;
  const givenUp = createGivenUpSessions({ connectionString, applicationName, answerMs });
  const lender = lend(pool, givenUp);
  const query = ((text: string, values?: unknown[]) =>
    queryOnce(lender, text, values).catch(rethrow)) as Sql['query'];
  const runTransaction: Database['transaction'] = async (work, how) => {
    const result = await transaction(lender, work, how).catch(rethrow);
    options.onCommitted?.();
    return result;
  };
  return {
    query,
    pool,
    transaction: runTransaction,
    confirmReads: oneAfterAnother(() => runTransaction(async () => undefined)),
    async close(withinMs) {
      const ended = pool.end();
      const closed = givenUp.close();
      if (withinMs !== undefined && !(await waitAtMost(ended, withinMs / 2))) lender.endAll();
      await Promise.all([ended, closed]);
    },
  };
}

/** By what a session of the server is named that has to be ended: see `GivenUpSessions`. */
const sessions = new WeakMap<object, string>();

async function rememberSession(client: pg.ClientBase): Promise<void> {
  sessions.set(client, await findSessionKey(client));
}

/**
 * Lends out connections. The place in the pool of one that is given up is free only when its session has ended in the
 * server: there are never more sessions than the pool has places.
 */
function lend(pool: pg.Pool, givenUp: GivenUpSessions): Lender & { endAll(): void } {
  const lent = new Set<pg.PoolClient>();
  let isEnding = false;
  const end = (client: pg.PoolClient) => givenUp.end(sessions.get(client) ?? '');
  return {
    async take() {
      const client = await pool.connect();
      lent.add(client);
      // It was still being made when the pool was closed, so that nobody has ended it yet.
      if (isEnding) void end(client);
      return client;
    },
    giveBack(client, broken) {
      lent.delete(client);
      if (broken && isUnavailable(broken)) void end(client).then(() => client.release(broken));
      else client.release(broken);
    },
    endAll() {
      isEnding = true;
      for (const client of lent) void end(client);
    },
  };
}

async function queryOnce(lender: Lender, text: string, values?: unknown[]) {
  const client = await lender.take();
  let broken: Error | undefined;
  try {
    return await client.query(text, values);
  } catch (error) {
    if (isUnavailable(error)) broken = toError(error);
    throw error;
  } finally {
    lender.giveBack(client, broken);
  }
}

/** Whoever asks while the work is under way waits for the next one, together with all others who do. */
function oneAfterAnother(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<void> | null = null;
  return () => {
    if (next) return next;
    next = running.then(() => {
      next = null;
      return work();
    });
    running = next.catch(() => undefined);
    return next;
  };
}

/** Where it is there, and answers that it cannot. */
const unavailableTexts: ReadonlyMap<string, string> = new Map([
  [states.readOnly, 'The database is read-only.'],
  [states.lockNotAvailable, 'A lock in the database was not to be had in time.'],
  [states.diskFull, 'The disk of the database is full.'],
]);

/** Maps "the database is away" to a code of its own, so that each edge can answer it in its own way. */
function toDomain(cause: unknown): unknown {
  if (cause instanceof DomainError) return cause;
  if (isMissingTable(cause))
    return new DomainError('unavailable', 'The database is not as this program knows it.', {
      cause,
    });
  const kind = kindOf(cause);
  const text = unavailableTexts.get(stateOf(cause));
  if (kind === 'unavailable')
    return new DomainError('unavailable', text ?? 'The database is away.', { cause });
  if (kind === 'cancelled')
    return new DomainError('unavailable', text ?? 'The database took too long for this.', {
      cause,
    });
  return cause;
}

/** undefined_table: a program finds its tables by the schema's name, and a later one may have moved them. */
function isMissingTable(error: unknown): boolean {
  return stateOf(error) === states.undefinedTable;
}
