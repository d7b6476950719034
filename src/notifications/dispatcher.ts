import type { Sql } from '../db/sql.ts';
import { takeTurns } from './outbox.ts';
import type { Lane, Turn } from './turn.ts';

export type DispatcherOptions = {
  db: Sql;
  clock: () => number;
  /** Makes one attempt and writes down how it ended. */
  deliver: (turn: Turn) => Promise<void>;
  /** Deliveries of each lane under way at once in this process, of one account, and to one host of webhooks. */
  places: Record<Lane, number>;
  perAccount?: number;
  perHost?: number;
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
/** Whoever has many accounts has one receiver for all of them, or must have many receivers. */
const defaultPerHost = 16;

/**
 * Delivers messages, the accounts in turn, until it is closed. Each lane has places of its own: however many
 * receivers or providers of one hang, the others go on.
 */
export function startDispatcher(options: DispatcherOptions): Dispatcher {
  const { db, clock, deliver, places, pollIntervalMs, leaseMs, onError } = options;
  const { perAccount = defaultPerAccount, perHost = defaultPerHost } = options;
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

  function freePlaces(): Record<Lane, number> {
    const free = { ...places };
    for (const { turn } of underWay) free[turn.lane] -= 1;
    return free;
  }

  async function fill(): Promise<void> {
    do {
      again = false;
      const free = freePlaces();
      if (Object.values(free).every((n) => n <= 0)) return;
      const turns = [...underWay].map(({ turn }) => turn);
      const query = { nowMs: clock(), places: free, perAccount, perHost, underWay: turns, leaseMs };
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
