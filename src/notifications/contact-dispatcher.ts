import type { Sql } from '../db/sql.ts';
import { takeDueDeliveries, type ContactDelivery } from './dispatch-queries.ts';

export type DispatcherOptions = {
  db: Sql;
  clock: () => number;
  /** Makes one attempt and writes down how it ended. */
  deliver: (turn: ContactDelivery) => Promise<void>;
  /** Deliveries under way at once in this process, and of one account. */
  parallel?: number;
  perAccount?: number;
  pollIntervalMs: number;
  leaseMs: number;
  onError: (error: unknown) => void;
};

export type ContactDispatcher = {
  /** Something may be due. */
  look: () => void;
  /** Lets deliveries under way end, and takes no more. */
  close: () => Promise<void>;
};

/** Enough that accounts whose receivers hang leave places for others: each has two of them at most. */
const defaultParallel = 16;
/** Webhooks leave these to mail, however many accounts have receivers that hang. */
const keptForMail = 4;
const defaultPerAccount = 2;

/** Delivers to contacts, the accounts in turn, until it is closed. */
export function startContactDispatcher(options: DispatcherOptions): ContactDispatcher {
  const { db, clock, deliver, pollIntervalMs, leaseMs, onError } = options;
  const { parallel = defaultParallel, perAccount = defaultPerAccount } = options;
  const underWay = new Map<
    number,
    Pick<ContactDelivery, 'accountId' | 'kind'> & { ended: Promise<void> }
  >();
  let looking: Promise<void> | null = null;
  let again = false;
  let closed = false;

  function begin(turn: ContactDelivery): void {
    const ended = deliver(turn)
      .catch(onError)
      .finally(() => {
        underWay.delete(turn.contactId);
        look();
      });
    const { accountId, kind } = turn;
    underWay.set(turn.contactId, { accountId, kind, ended });
  }

  async function fill(): Promise<void> {
    do {
      again = false;
      const limit = parallel - underWay.size;
      if (limit === 0) return;
      const busyAccounts = [...underWay.values()].map(({ accountId }) => accountId);
      const hooks = [...underWay.values()].filter(({ kind }) => kind === 'webhook').length;
      const hookLimit = Math.max(0, parallel - keptForMail - hooks);
      const query = { nowMs: clock(), limit, perAccount, hookLimit, busyAccounts, leaseMs };
      for (const turn of await takeDueDeliveries(db, query)) begin(turn);
    } while (again && !closed);
  }

  /** One look at a time: what is asked meanwhile is another one right after it. */
  function look(): void {
    again = true;
    if (closed || looking) return;
    looking = fill()
      .catch(onError)
      .finally(() => {
        looking = null;
        // Asked between the last look and here.
        if (again && underWay.size < parallel) look();
      });
  }

  const timer = setInterval(look, pollIntervalMs);
  look();
  return {
    look,
    async close() {
      closed = true;
      clearInterval(timer);
      await looking;
      await Promise.all([...underWay.values()].map(({ ended }) => ended));
    },
  };
}
