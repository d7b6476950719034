import type { Sql } from '../db/sql.ts';
import type { MessageChannel } from './sort-out.ts';
import { takeTurns } from './take-turns.ts';
import type { Turn } from './turn.ts';

export type DispatcherOptions = {
  db: Sql;
  clock: () => number;
  /** Makes one attempt and writes down how it ended. */
  deliver: (turn: Turn) => Promise<void>;
  /** Deliveries of each channel under way at once in this process, and of one account in all. */
  places: Record<MessageChannel, number>;
  perAccount?: number;
  pollIntervalMs: number;
  leaseMs: number;
  onError: (error: unknown) => void;
};

export type Dispatcher = {
  /** Something may be due. */
  look: () => void;
  /** When it last looked for what is due, ms; null: not yet. */
  lastLookTs: () => number | null;
  /** Lets deliveries under way end, and takes no more. */
  close: () => Promise<void>;
};

const defaultPerAccount = 2;

/**
 * Delivers messages, the accounts in turn, until it is closed. Each channel has places of its own: however many
 * receivers or providers of one hang, the others go on.
 */
export function startDispatcher(options: DispatcherOptions): Dispatcher {
  const { db, clock, deliver, places, pollIntervalMs, leaseMs, onError } = options;
  const { perAccount = defaultPerAccount } = options;
  const underWay = new Set<{ turn: Turn; ended: Promise<void> }>();
  let looking: Promise<void> | null = null;
  let again = false;
  let closed = false;
  let lastLookTs: number | null = null;

  function begin(turn: Turn): void {
    const ended = deliver(turn)
      .catch(onError)
      .finally(() => {
        underWay.delete(delivery);
        look();
      });
    const delivery = { turn, ended };
    underWay.add(delivery);
  }

  function freePlaces(): Record<MessageChannel, number> {
    const free = { ...places };
    for (const { turn } of underWay) free[turn.kind] -= 1;
    return free;
  }

  async function fill(): Promise<void> {
    do {
      again = false;
      const free = freePlaces();
      if (Object.values(free).every((n) => n <= 0)) return;
      const busyAccounts = [...underWay].map(({ turn }) => turn.accountId);
      const query = { nowMs: clock(), places: free, perAccount, busyAccounts, leaseMs };
      for (const turn of await takeTurns(db, query)) begin(turn);
      lastLookTs = clock();
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
        if (again && Object.values(freePlaces()).some((n) => n > 0)) look();
      });
  }

  const timer = setInterval(look, pollIntervalMs);
  look();
  return {
    look,
    lastLookTs: () => lastLookTs,
    async close() {
      closed = true;
      clearInterval(timer);
      await looking;
      await Promise.all([...underWay].map(({ ended }) => ended));
    },
  };
}
