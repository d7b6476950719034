import { AsyncLocalStorage } from 'node:async_hooks';
import { DomainError } from '../errors.ts';
import { MemoryBudget, type Reservation } from '../lib/memory-budget.ts';
import { waitAtMost } from '../lib/wait.ts';
import type { Database, Wait } from './database.ts';
import type { Sql } from './sql.ts';

/** What one request of an account does in the database. */
type AccountWork = {
  /** The statements of `work` take the account's turns, one at a time. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** It was answered: what it left behind runs as the service's own. */
  end(): void;
};

type SharesOptions = {
  /** Connections of the pool. */
  connections: number;
  /** How a statement is waited for; see `createPatience`. */
  wait: Wait;
  /** How long one waits for its turn while others get theirs. */
  turnMs: number;
};

export type SharedDatabase = {
  db: Database;
  beginWork: (accountId: number) => AccountWork;
  /** Statements that wait for a connection because their accounts, or all of them, have as many as they may. */
  countWaiting: () => number;
};

/** A part of the pool is not for accounts: logins, sessions, probes and the service itself find a connection at once. */
const reservedPart = 1 / 5;
/** What one account may have of the others. */
const accountShare = 1 / 4;

/**
 * Shares a pool out. Accounts take turns at their part of it, and none has more than a quarter of that; one request
 * has one connection, so its statements run one after the other. What is no account's runs at once.
 */
export function shareOut(
  db: Database,
  { connections, wait, turnMs }: SharesOptions,
): SharedDatabase {
  const current = new AsyncLocalStorage<Place>();
  const budget = new MemoryBudget({
    maxBytes: connections - Math.ceil(connections * reservedPart),
    share: accountShare,
    // Each of them is a request, and these are bounded by the room that requests have.
    maxWaiting: Infinity,
    maxWaitingOfKey: Infinity,
  });

  async function inTurn<T>(work: (place: Place | null) => Promise<T>): Promise<T> {
    const place = current.getStore();
    if (!place || place.isHeld || place.request.hasEnded) return wait(work(null));
    const { request } = place;
    const { promise: isOver, resolve: finish } = Promise.withResolvers<void>();
    const before = request.last;
    request.last = isOver;
    let reservation: Reservation | undefined;
    let hasGivenUp = false;
    const run = async () => {
      await before;
      if (hasGivenUp) throw waitedTooLong();
      reservation = budget.enter(request.name, 1) ?? undefined;
      if (!reservation) throw waitedTooLong();
      if (!reservation.isIn && !(await waitAtMost(reservation.entered, turnMs)))
        throw waitedTooLong();
      return work(place);
    };
    try {
      return await wait(run());
    } finally {
      hasGivenUp = true;
      reservation?.leave();
      finish();
    }
  }

  return {
    db: {
      ...db,
      query: ((text: string, values?: unknown[]) =>
        inTurn(() => db.query(text, values))) as Sql['query'],
      // One commit at a time for all who ask, and so nobody's turn.
      confirmReads: () => wait(db.confirmReads()),
      transaction: (work, options) =>
        inTurn((place) => {
          if (!place) return db.transaction(work, options);
          const held: Place = { request: place.request, isHeld: true };
          const run: typeof work = (tx) => current.run(held, () => work(tx));
          return db.transaction(run, options).finally(() => (held.isHeld = false));
        }),
    },
    beginWork(accountId) {
      const request = { name: String(accountId), hasEnded: false, last: Promise.resolve() };
      return {
        run: (work) => current.run({ request, isHeld: false }, work),
        end: () => void (request.hasEnded = true),
      };
    },
    countWaiting: () => budget.waiting,
  };
}

type Place = {
  request: {
    /** The account. */
    name: string;
    hasEnded: boolean;
    /** Its statement before the next one. */
    last: Promise<void>;
  };
  /**
   * Within a transaction, which has the request's connection: what goes over another one meanwhile would wait for it
   * without end, and takes no turn.
   */
  isHeld: boolean;
};

function waitedTooLong(): DomainError {
  const message = 'The account has too many requests in progress: try again later.';
  return new DomainError('unavailable', message, { retryAfterSeconds: 5 });
}
