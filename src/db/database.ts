import pg from 'pg';
import { DomainError } from '../errors.ts';
import { beginPipelined } from './begin.ts';
import { copyIn } from './copy-in.ts';

/** Whatever runs SQL: the pool, or one transaction. Every query function takes it first. */
export type Sql = {
  query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    text: string,
    values?: unknown[],
  ): Promise<pg.QueryResult<R>>;
  query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    config: pg.QueryConfig,
  ): Promise<pg.QueryResult<R>>;
};

export type Transaction = Sql & {
  /** `COPY … FROM STDIN`, with `bytes` in the format that the statement names; see `CopyRows`. */
  copyIn(statement: string, bytes: Buffer): Promise<void>;
};

export type Database = Sql & {
  /** Commits what `work` did, or rolls back when it throws. */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  pool: pg.Pool;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  connectionString: string;
  maxConnections: number;
  connectTimeoutMs: number;
  /** Sent to the server: a statement that takes longer is cancelled there. */
  statementTimeoutMs: number;
  /** Statements of one transaction are sent without waiting for the answers to those before. */
  pipeline?: boolean;
  /**
   * Named statements are planned once, for any number of elements. PostgreSQL would rather plan those
   * that take arrays anew for each length, which for a few elements takes longer than the statement.
   */
  keepPlans?: boolean;
  /** A connection error outside any query; the pool replaces the connection by itself. */
  onIdleError: (error: Error) => void;
};

// Identities stay far below 2^53, and a point in time is a number of milliseconds everywhere in this
// program: both are plain numbers from here on.
const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);
types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) => new Date(text).getTime());

/** Connects lazily: nothing is opened before the first query. */
export function openDatabase(options: DatabaseOptions): Database {
  const settings = {
    statement_timeout: options.statementTimeoutMs,
    timezone: 'UTC',
    // What arrives late may touch any number of compressed rows. PostgreSQL without TimescaleDB takes it
    // for a setting of somebody else's.
    'timescaledb.max_tuples_decompressed_per_dml_transaction': 0,
    ...(options.keepPlans ? { plan_cache_mode: 'force_generic_plan' } : {}),
  };
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.maxConnections,
    connectionTimeoutMillis: options.connectTimeoutMs,
    options: Object.entries(settings)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
    // A server that stopped answering cannot cancel: give up on this side a little later.
    query_timeout: options.statementTimeoutMs + 1_000,
    types,
    ...(options.pipeline ? { pipeline: true } : {}),
  });
  pool.on('error', options.onIdleError);
  // A connection that ends while a transaction holds it, between two statements, tells nobody else:
  // without a listener that would end the process. The next statement fails, which is enough.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const query = ((text: string, values?: unknown[]) =>
    pool.query(text, values).catch(rethrow)) as Sql['query'];
  return {
    query,
    pool,
    transaction: (work) => transaction(pool, work).catch(rethrow),
    close: () => pool.end(),
  };
}

async function transaction<T>(pool: pg.Pool, work: (tx: Transaction) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    const begun = client.pipeline ? beginPipelined(client) : await client.query('begin');
    const [, result] = await Promise.all([begun, work(transactionOn(client))]);
    await client.query('commit');
    return result;
  } catch (error) {
    // A server that is away would let the rollback wait as long again; it does one by itself when the
    // connection ends.
    if (isUnavailable(error)) broken = toError(error);
    else await client.query('rollback').catch((cause: unknown) => (broken = toError(cause)));
    throw error;
  } finally {
    client.release(broken);
  }
}

function transactionOn(client: pg.PoolClient): Transaction {
  return {
    query: client.query.bind(client) as Sql['query'],
    copyIn: (statement, bytes) => copyIn(client, statement, bytes),
  };
}

function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** Gives "the database is away" its own code, so that every edge can answer it in its own way. */
function rethrow(error: unknown): never {
  throw isUnavailable(error) && !(error instanceof DomainError)
    ? new DomainError('unavailable', 'The database is away.', { cause: error })
    : error;
}

/**
 * Whether an error says that the server, or the way to it, is away for now: connection errors
 * (class 08, socket errors), shutdown and start-up (57P0x), no room (53xxx), a timeout (57014).
 */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof DomainError) return error.code === 'unavailable';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (/^(08|53|57P0|57014|58)/.test(code)) return true;
  if (/^E(CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_AGAIN)/.test(code)) return true;
  return (
    /timeout|Connection terminated|not queryable|connection error/i.test(error.message) &&
    code === ''
  );
}
