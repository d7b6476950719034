import { DomainError } from '../errors.ts';
import type { Database, Sql } from './database.ts';

export type PatienceOptions = {
  /** After this long without an answer the database is asked whether it is there, in milliseconds. */
  patienceMs: number;
  /** Asks it, over a connection that nothing else uses; rejects soon where there is no answer. */
  ping: () => Promise<unknown>;
};

/**
 * A database that says `unavailable` soon when the server has stopped answering, and still lets a
 * statement take its time when it has not: time alone cannot tell the two apart, a second connection
 * can. What a statement given up on did is unknown.
 */
export function withPatience(db: Database, { patienceMs, ping }: PatienceOptions): Database {
  let asked: Promise<unknown> | null = null;
  const isThere = () => (asked ??= ping().finally(() => (asked = null)));

  async function wait<T>(work: Promise<T>): Promise<T> {
    const { promise: hopeless, reject } = Promise.withResolvers<never>();
    const giveUp = (cause: unknown) =>
      reject(new DomainError('unavailable', 'The database does not answer.', { cause }));
    const timer = setInterval(() => void isThere().catch(giveUp), patienceMs);
    // Whoever gave up no longer listens to how it ends.
    work.catch(() => undefined);
    return Promise.race([work, hopeless]).finally(() => clearInterval(timer));
  }

  return {
    ...db,
    query: ((text: string, values?: unknown[]) => wait(db.query(text, values))) as Sql['query'],
    transaction: (work) => wait(db.transaction(work)),
  };
}

/** Rejects when the work takes longer; how it ends is then nobody's concern. */
export function withTimeout<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
  work.catch(() => undefined);
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
