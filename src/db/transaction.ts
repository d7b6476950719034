import type pg from 'pg';
import { DomainError } from '../errors.ts';
import { toError } from '../lib/thrown.ts';
import { beginPipelined, copyIn } from './pg-driver.ts';
import type { Sql } from './sql.ts';
import { isUnavailable, stateOf, states } from './errors.ts';

export type Transaction = Sql & {
  /** `COPY … FROM STDIN`, with `bytes` in the format that the statement names; see `CopyRows`. */
  copyIn(statement: string, bytes: Buffer): Promise<void>;
};

export type TransactionOptions = {
  /**
   * The transaction whose commit need not be waited for: this one begins behind it, on its connection,
   * and is itself committed only if that one was; `unavailable` where it was not.
   */
  behind?: Committing | undefined;
  /** Called when only the commit is left, and it is under way. */
  onCommitting?: (committing: Committing) => void;
};

/** A transaction whose commit was sent, as another sees it that begins behind it. */
export type Committing = {
  readonly connection: SharedConnection;
  readonly committed: Promise<unknown>;
};

/** Whoever lends connections out. */
export type Lender = {
  take(): Promise<pg.PoolClient>;
  /** `broken`: the error after which the connection cannot be used any more. */
  giveBack(client: pg.PoolClient, broken?: Error): void;
};

/** A connection, kept until the last of the transactions on it has ended. */
class SharedConnection {
  readonly client: pg.PoolClient;
  readonly #lender: Lender;
  /** The error after which it cannot be used any more. */
  broken: Error | undefined;
  #users = 1;

  constructor(client: pg.PoolClient, lender: Lender) {
    this.client = client;
    this.#lender = lender;
  }

  /** False where nobody uses it any more: it is the pool's again. */
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
 * The message makes the commit wait for a synchronous standby, as a write does, also where nothing was written: PostgreSQL
 * waits only for transactions that have a row or a message of their own in the log. Without it a repeated measurement,
 * found stored, would be acknowledged although no standby has it (docs/reliability.md).
 */
export const commit = `select pg_logical_emit_message(true, 'sensorium', ''); commit`;

/**
 * The statements of one transaction. Its work may send several without waiting in between: where the connection is not
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

  /**
   * From now on nothing is sent: a part of the work that goes on after another part has failed would write outside of any
   * transaction. Resolves when the connection is free for what ends it.
   */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#last;
  }

  /**
   * Why the transaction failed. After one error the server answers all that follows with 25P02, which says nothing; and
   * the work may hear that one first, or have ignored the other.
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
        // The last one: after those before it the work went back to a savepoint.
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
 * Commits what `work` did, or rolls back when it, or the transaction it is behind, fails. What `work` has read is as safe
 * then as what it has written. Rejects with the error that ended the transaction, also where `work` heard of another one
 * first or went on after it.
 */
export async function transaction<T>(
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
    // On one connection that was answered before this one's statements were.
    await behind?.committed.catch(throwOvertaken);
    await tx.end();
    isCommitting = true;
    const committed = client.query(commit);
    onCommitting?.({ connection: shared, committed });
    await committed;
    return result;
  } catch (error) {
    // A rollback would hit what has begun behind a commit, and a server that is away would let it wait as
    // long again: the server does one by itself when the connection ends.
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
  const message = 'The transaction before this one was not committed.';
  throw new DomainError('unavailable', message, { cause });
}
