import pg from 'pg';
import { DomainError } from '../errors.ts';
import { toError } from '../lib/thrown.ts';
import { waitAtMost } from '../lib/wait.ts';
import { version } from '../version.ts';
import type { Clock } from '../lib/clock-readings.ts';
import { isUnavailable, kindOf, stateOf, states } from './errors.ts';
import {
  createGivenUpSessions,
  findSessionKey,
  type GivenUpSessions,
} from './given-up-sessions.ts';
import { beginPipelined, copyIn, copyOut, failUnreplicated } from './pg-driver.ts';
import { optionsOf, sessionFormats, type Sql, types } from './sql.ts';

/** Reads many rows: from the pool, or in one transaction. */
export type CopySource = Sql & {
  /**
   * `COPY … TO STDOUT`, a row after the other, in the format that the statement names (`CopiedRows`). The bytes are
   * valid only during the call.
   */
  copyOut(statement: string, onRow: (row: Buffer) => void): Promise<void>;
};

export type Database = CopySource & {
  /** Commits what `work` did, or rolls back when it throws. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /**
   * Resolves when everything that was read before the call is as safe as a commit, on the synchronous standby too. For
   * answers that say "it exists already" or "it is gone" and write nothing. All callers share one commit at a time.
   */
  confirmReads(): Promise<void>;
  pool: pg.Pool;
  /**
   * Waits for work under way, then closes the connections. With `withinMs`, sessions that are still busy after half of
   * that time are ended in the server, so that none is left there.
   */
  close(withinMs?: number): Promise<void>;
};

export type DatabaseOptions = {
  connectionString: string;
  /** The schema of the tables, as returned by `migrate`. */
  schema: string;
  maxConnections: number;
  connectTimeoutMs: number;
  /** The server cancels a statement that takes longer. */
  statementTimeoutMs: number;
  /** How long this side waits for an answer, ms; default: a second longer than a statement may take. */
  answerTimeoutMs?: number;
  /** Sends the statements of a transaction without waiting for earlier answers. */
  pipeline?: boolean;
  /**
   * Plans named statements once, for arrays of any length. By default PostgreSQL plans a statement with arrays again
   * for each length, which for a few elements takes longer than the statement.
   */
  keepPlans?: boolean;
  /** The application name of its connections, unless the connection string has one. */
  applicationName?: string;
  /** Notes when a transaction's commit last returned, by `clock`; null: none has. */
  lastCommit?: { ts: number | null; readonly clock: Clock };
  /** A connection failed outside any query. The pool replaces it by itself. */
  onIdleError: (error: Error) => void;
  /** A table was not in `schema`. The statement fails with `unavailable`. */
  onMissingTable?: () => void;
};

/** Connects lazily: opens no connection before the first query. */
export function openDatabase(options: DatabaseOptions): Database {
  const settings = {
    statement_timeout: options.statementTimeoutMs,
    ...sessionFormats,
    search_path: searchPathFor(options.schema),
    // Late data may touch any number of compressed rows. PostgreSQL without TimescaleDB ignores this setting.
    'timescaledb.max_tuples_decompressed_per_dml_transaction': 0,
    ...(options.applicationName ? { application_name: options.applicationName } : {}),
    ...(options.keepPlans ? { plan_cache_mode: 'force_generic_plan' } : {}),
  };
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.maxConnections,
    connectionTimeoutMillis: options.connectTimeoutMs,
    options: optionsOf(settings),
    // A server that no longer answers cannot cancel a statement, so this side gives up a little later.
    query_timeout: options.answerTimeoutMs ?? options.statementTimeoutMs + 1_000,
    types,
    // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it, which its types do not say
    onConnect: rememberSession,
    ...(options.pipeline ? { pipeline: true } : {}),
  });
  // The pool reports its end before its connections are closed. A connection that the server ends then is not lost.
  pool.on('error', (error) => {
    if (!pool.ending) options.onIdleError(error);
  });
  // A connection may end between two statements of a transaction. Without a listener that error would end the process.
  // The next statement fails, which is enough.
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
    useOnce(lender, (client) => client.query(text, values)).catch(rethrow)) as Sql['query'];
  const runTransaction: Database['transaction'] = async (work, how) => {
    const result = await transaction(lender, work, how).catch(rethrow);
    if (options.lastCommit) options.lastCommit.ts = options.lastCommit.clock();
    return result;
  };
  return {
    query,
    copyOut: (statement, onRow) =>
      useOnce(lender, (client) => copyOut(client, statement, onRow)).catch(rethrow),
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

/** The key of each connection's session in the server, for ending it: see `GivenUpSessions`. */
const sessions = new WeakMap<object, string>();

async function rememberSession(client: pg.ClientBase): Promise<void> {
  sessions.set(client, await findSessionKey(client));
}

/**
 * Lends out connections. A given-up connection frees its place in the pool only once its session in the server has
 * ended, so there are never more sessions than places.
 */
function lend(pool: pg.Pool, givenUp: GivenUpSessions): Lender & { endAll(): void } {
  const lent = new Set<pg.PoolClient>();
  let isEnding = false;
  const end = (client: pg.PoolClient) => givenUp.end(sessions.get(client) ?? '');
  return {
    async take() {
      const client = await pool.connect();
      lent.add(client);
      // The connection was still being opened when the pool closed, so nothing has ended it yet.
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

async function useOnce<T>(lender: Lender, use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await lender.take();
  let broken: Error | undefined;
  try {
    return await use(client);
  } catch (error) {
    if (isUnavailable(error)) broken = toError(error);
    throw error;
  } finally {
    lender.giveBack(client, broken);
  }
}

/** Callers that arrive while the work is under way share the next run. */
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

/** Errors of a server that is reachable but cannot do the work. */
const unavailableTexts: ReadonlyMap<string, string> = new Map([
  [states.readOnly, 'The database is read-only.'],
  [states.lockNotAvailable, 'The database did not grant a lock in time.'],
  [states.diskFull, "The database's disk is full."],
]);

/** Maps "the database is away" to a code of its own, so that HTTP and MQTT can each answer it in their way. */
function toDomain(cause: unknown): unknown {
  if (cause instanceof DomainError) return cause;
  if (isMissingTable(cause))
    return new DomainError(
      'unavailable',
      "The database's schema is not the one this program expects.",
      {
        cause,
      },
    );
  const kind = kindOf(cause);
  const text = unavailableTexts.get(stateOf(cause));
  if (kind === 'unavailable')
    return new DomainError('unavailable', text ?? 'The database is unreachable.', { cause });
  if (kind === 'cancelled')
    return new DomainError('unavailable', text ?? 'The database took too long to answer.', {
      cause,
    });
  return cause;
}

/** undefined_table: a program finds its tables by the schema's name, and a later version may have moved them. */
function isMissingTable(error: unknown): boolean {
  return stateOf(error) === states.undefinedTable;
}

/** `0.2.0` → `sensorium_0_2_0`: the schema of the tables while programs from that version on may write. */
export function schemaNameFor(leastWriter: string): string {
  return `sensorium_${leastWriter.replaceAll('.', '_')}`;
}

/**
 * The schemas in which a connection looks for tables: the current one, and the one to which a later version moves them
 * if it lets no version before this one write. The functions of extensions are in `public`.
 */
function searchPathFor(schema: string): string {
  return [...new Set([schema, schemaNameFor(version)]), 'public'].join(',');
}

export type Transaction = CopySource & {
  /** `COPY … FROM STDIN`, with `bytes` in the format that the statement names; see `CopyRows`. */
  copyIn(statement: string, bytes: Buffer): Promise<void>;
};

type TransactionOptions = {
  /**
   * A transaction whose commit is still under way. This one begins behind it, on its connection, and commits only if
   * that one did; otherwise it fails as `unavailable`.
   */
  behind?: Committing | undefined;
  /** Called once the commit has been sent, before it returns. */
  onCommitting?: (committing: Committing) => void;
};

/** A transaction whose commit was sent, for another one that begins behind it. */
export type Committing = {
  readonly connection: SharedConnection;
  readonly committed: Promise<unknown>;
};

/** Lends out connections. */
type Lender = {
  take(): Promise<pg.PoolClient>;
  /** `broken`: the error after which the connection is unusable. */
  giveBack(client: pg.PoolClient, broken?: Error): void;
};

/** A connection that is kept until the last of the transactions on it has ended. */
class SharedConnection {
  readonly client: pg.PoolClient;
  readonly #lender: Lender;
  /** The error after which it is unusable. */
  broken: Error | undefined;
  #users = 1;

  constructor(client: pg.PoolClient, lender: Lender) {
    this.client = client;
    this.#lender = lender;
  }

  /** False if no transaction uses it any more and it is back in the pool. */
  join(): boolean {
    if (this.#users > 0) this.#users += 1;
    return this.#users > 0;
  }

  leave(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#lender.giveBack(this.client, this.broken);
  }
}

/**
 * The message makes the commit wait for a synchronous standby even if the transaction wrote nothing. PostgreSQL waits
 * only for transactions that have a row or a message of their own in the log. Without it, a repeated measurement that
 * is found stored would be acknowledged although no standby has it (docs/reliability.md).
 */
const commit = `select pg_logical_emit_message(true, 'sensorium', ''); commit`;

/**
 * The statements of one transaction. The work may send several without waiting in between. On a connection that is not
 * pipelined, they wait here for each other.
 */
class OpenTransaction implements Transaction {
  readonly #client: pg.PoolClient;
  readonly query: Sql['query'];
  #isOver = false;
  #last: Promise<unknown> = Promise.resolve();
  #failure: unknown = null;

  constructor(client: pg.PoolClient) {
    this.#client = client;
    this.query = ((text: string, values?: unknown[]) =>
      this.#send(() => client.query(text, values))) as Sql['query'];
  }

  copyIn(statement: string, bytes: Buffer): Promise<void> {
    return this.#send(() => copyIn(this.#client, statement, bytes));
  }

  copyOut(statement: string, onRow: (row: Buffer) => void): Promise<void> {
    return this.#send(() => copyOut(this.#client, statement, onRow));
  }

  /**
   * Stops sending: after one part of the work has failed, another part that goes on would write outside any
   * transaction. Resolves when the connection is free for the statement that ends the transaction.
   */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#last;
  }

  /**
   * Why the transaction failed. After one error the server answers all later statements with 25P02, which explains
   * nothing. The work may see that one first, or may have ignored the original error.
   */
  causeOf(error: unknown): unknown {
    const isEcho = stateOf(error) === states.inFailedTransaction;
    return isEcho ? (this.#failure ?? error) : error;
  }

  #send<T>(statement: () => Promise<T>): Promise<T> {
    const send = async () => {
      if (this.#isOver) throw new Error('A statement was sent after its transaction had ended.');
      try {
        return await statement();
      } catch (error) {
        // The last error counts: after earlier ones the work went back to a savepoint.
        if (stateOf(error) !== states.inFailedTransaction) this.#failure = error;
        throw error;
      }
    };
    if (this.#client.pipeline) return send();
    const sent = this.#last.then(send);
    this.#last = sent.catch(() => undefined);
    return sent;
  }
}

/**
 * Commits what `work` did, or rolls back if `work` or the transaction in front of it fails. Whatever `work` has read is
 * then as safe as what it has written. Rejects with the error that ended the transaction, even if `work` saw a later
 * error first or went on after it.
 */
async function transaction<T>(
  lender: Lender,
  work: (tx: Transaction) => Promise<T>,
  { behind, onCommitting }: TransactionOptions = {},
): Promise<T> {
  const shared = behind?.connection.join()
    ? behind.connection
    : new SharedConnection(await lender.take(), lender);
  const { client } = shared;
  const tx = new OpenTransaction(client);
  let isCommitting = false;
  try {
    const begun = client.pipeline ? beginPipelined(client) : await client.query('begin');
    const [, result] = await Promise.all([begun, work(tx)]);
    // The server answered that commit before this transaction's statements, because they share a connection.
    await behind?.committed.catch(throwOvertaken);
    await tx.end();
    isCommitting = true;
    const committed = client.query(commit);
    onCommitting?.({ connection: shared, committed });
    await committed;
    return result;
  } catch (error) {
    // A rollback would hit the transaction that began behind this commit, and on a server that is away it would wait as
    // long again. The server rolls back by itself when the connection ends.
    const ended = tx.end();
    const cause = tx.causeOf(error);
    if (isCommitting || isUnavailable(cause)) shared.broken ??= toError(cause);
    else {
      await ended;
      await client.query('rollback').catch((lost: unknown) => (shared.broken ??= toError(lost)));
    }
    throw tx.causeOf(error);
  } finally {
    shared.leave();
  }
}

function throwOvertaken(cause: unknown): never {
  const message = 'The previous transaction was not committed.';
  throw new DomainError('unavailable', message, { cause });
}

type PatienceOptions = {
  /** After this long without an answer, in ms, a second connection checks the database. */
  patienceMs: number;
  /** The check, on a connection that nothing else uses. Rejects soon if there is no answer. */
  ping: () => Promise<unknown>;
};

/** Waits for database work. Rejects with `unavailable` if the server stops answering meanwhile. */
export type Wait = <T>(work: Promise<T>) => Promise<T>;

/**
 * Reports `unavailable` soon if the server has stopped answering, but keeps waiting for a slow statement of a server
 * that answers. A timeout alone cannot tell the two apart; a second connection can. Whether the abandoned statement was
 * executed is unknown.
 */
export function createPatience({ patienceMs, ping }: PatienceOptions): Wait {
  let asked: Promise<unknown> | null = null;
  const isThere = () => (asked ??= ping().finally(() => (asked = null)));

  return async (work) => {
    const { promise: hopeless, reject } = Promise.withResolvers<never>();
    const giveUp = (cause: unknown) =>
      reject(new DomainError('unavailable', 'The database does not answer.', { cause }));
    const ask = () => void isThere().then(askLater, giveUp);
    let cancel = afterRunning(patienceMs, ask);
    const askLater = () => {
      cancel = afterRunning(patienceMs, ask);
    };
    // If the caller has given up, nobody else handles this rejection.
    work.catch(() => undefined);
    try {
      return await Promise.race([work, hopeless]);
    } finally {
      cancel();
    }
  };
}

/** Rejects if the work takes longer. Its result is then ignored. */
export async function withTimeout<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const cancel = afterRunning(timeoutMs, () => reject(new Error(`no answer in ${timeoutMs} ms`)));
  work.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    cancel();
  }
}

const steps = 5;

/**
 * Fires once this process itself has run for that long. A process that got no processor time wakes up with timers due
 * and answers unread. Such a pause counts as one step of several, so that the answers are read first.
 */
function afterRunning(ms: number, act: () => void): () => void {
  let left = steps;
  const step = () => {
    left -= 1;
    if (left === 0) act();
    else timer = setTimeout(step, ms / steps);
  };
  let timer = setTimeout(step, ms / steps);
  return () => clearTimeout(timer);
}

/** PostgreSQL counts from 2000-01-01. */
// oxlint-disable-next-line no-restricted-globals -- a given time
const epochMs = Date.UTC(2000, 0, 1);
const signature = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const none = 0xffff;
/** A field with its length in front. No type written here has more than eight bytes. */
const fieldBytes = 12;

/**
 * Rows in PostgreSQL's binary format, which need no conversion to and from text. A DataView, because V8 compiles its
 * methods to single stores, and calls those of a Buffer.
 */
export class CopyRows {
  #bytes = Buffer.allocUnsafe(8_192);
  #view = viewOf(this.#bytes);
  #at = signature.copy(this.#bytes);

  /** Begins the next row, and reserves space for this many fields. */
  row(fields: number): this {
    this.#reserve(2 + fields * fieldBytes);
    this.#view.setUint16(this.#at, fields);
    this.#at += 2;
    return this;
  }

  bigint(value: number): this {
    const at = this.#at;
    const high = Math.floor(value / 2 ** 32);
    this.#view.setInt32(at, 8);
    this.#view.setInt32(at + 4, high);
    this.#view.setUint32(at + 8, value - high * 2 ** 32);
    this.#at = at + 12;
    return this;
  }

  /** A point in time, in milliseconds. */
  timestamptz(ts: number): this {
    return this.bigint((ts - epochMs) * 1_000);
  }

  smallint(value: number): this {
    this.#view.setInt32(this.#at, 2);
    this.#view.setInt16(this.#at + 4, value);
    this.#at += 6;
    return this;
  }

  null(): this {
    this.#view.setInt32(this.#at, -1);
    this.#at += 4;
    return this;
  }

  float8(value: number): this {
    this.#view.setInt32(this.#at, 8);
    this.#view.setFloat64(this.#at + 4, value);
    this.#at += 12;
    return this;
  }

  /** Returns all rows. Nothing can be added afterwards. */
  end(): Buffer {
    this.#reserve(2);
    this.#view.setUint16(this.#at, none);
    return this.#bytes.subarray(0, this.#at + 2);
  }

  #reserve(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * this.#bytes.length + count);
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
    this.#view = viewOf(larger);
  }
}

/** Reads the rows of `copyOut` in the binary format: field by field, in the order of the statement. NULL is NaN. */
export class CopiedRows {
  #row: Buffer = Buffer.alloc(0);
  #at = 0;
  #isFirst = true;

  /** Begins with a row. False: it was the last one, and what came is the end. */
  begin(row: Buffer): boolean {
    this.#row = row;
    this.#at = (this.#isFirst ? signature.length : 0) + 2;
    this.#isFirst = false;
    return row.readUInt16BE(this.#at - 2) !== none;
  }

  bigint(): number {
    const at = this.#next();
    if (at < 0) return NaN;
    return this.#row.readInt32BE(at) * 2 ** 32 + this.#row.readUInt32BE(at + 4);
  }

  /** A point in time, in microseconds. */
  timestamptz(): number {
    return this.bigint() + epochMs * 1_000;
  }

  smallint(): number {
    const at = this.#next();
    return at < 0 ? NaN : this.#row.readInt16BE(at);
  }

  float8(): number {
    const at = this.#next();
    return at < 0 ? NaN : this.#row.readDoubleBE(at);
  }

  /** Where the next field begins; -1: it is NULL. */
  #next(): number {
    const at = this.#at;
    const length = this.#row.readInt32BE(at);
    this.#at = at + 4 + Math.max(0, length);
    return length < 0 ? -1 : at + 4;
  }
}

const viewOf = ({ buffer, byteOffset, length }: Buffer) => new DataView(buffer, byteOffset, length);
