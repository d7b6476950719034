import { AsyncLocalStorage } from 'node:async_hooks';
import { DomainError } from '../errors.ts';
import { FairBudget, type Reservation } from '../lib/fair-budget.ts';
import { waitAtMost } from '../lib/wait.ts';
import type { Database, Wait } from './database.ts';
import type { Sql } from './sql.ts';

/** The database work of one request of an account. */
type AccountWork = {
  /** Runs the statements of `work` one at a time, within the account's share. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** The request was answered: what it left running counts as the service's own work. */
  end(): void;
};

type SharesOptions = {
  /** Connections of the pool. */
  connections: number;
  /** Waits for a statement; see `createPatience`. */
  wait: Wait;
  /** How long a statement waits for a connection while other accounts use theirs. */
  placeTimeoutMs: number;
};

export type SharedDatabase = {
  db: Database;
  beginWork: (accountId: number) => AccountWork;
  /** Statements that wait for a connection because their account, or all accounts, use as many as they may. */
  countWaiting: () => number;
};

/**
 * The part of the pool that accounts may not use, so that logins, sessions, probes and the service itself find a
 * connection at once.
 */
const reservedPart = 1 / 5;
/** The share of the rest that one account may use. */
const accountShare = 1 / 4;

/**
 * Shares out a pool. Accounts take turns at their part of it, and none gets more than a quarter of that part. A request
 * has one connection, so its statements run one after the other. Work that belongs to no account runs at once.
 */
export function shareOut(
  db: Database,
  { connections, wait, placeTimeoutMs }: SharesOptions,
): SharedDatabase {
  const current = new AsyncLocalStorage<Place>();
  const shared = connections - Math.ceil(connections * reservedPart);
  // Each waiting statement belongs to a request, and the memory for requests bounds those.
  const budget = new FairBudget({ most: shared, mostOfKey: () => shared * accountShare });

  async function withPlace<T>(work: (place: Place | null) => Promise<T>): Promise<T> {
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
      if (!reservation.isIn && !(await waitAtMost(reservation.entered, placeTimeoutMs)))
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
        withPlace(() => db.query(text, values))) as Sql['query'],
      // All callers share one commit at a time, so no account is charged for it.
      confirmReads: () => wait(db.confirmReads()),
      transaction: (work, options) =>
        withPlace((place) => {
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
    /** Its previous statement. */
    last: Promise<void>;
  };
  /**
   * Within a transaction, which occupies the request's connection. Another statement of the request would wait for it
   * forever, so it does not take part in the sharing.
   */
  isHeld: boolean;
};

function waitedTooLong(): DomainError {
  const message = 'The account has too many requests in progress: try again later.';
  return new DomainError('unavailable', message, { retryAfterSeconds: 5 });
}
