import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Account } from '../http/request.ts';
import type { NewStream } from './schema.ts';
import {
  countOpening,
  findTicket,
  insertTicket,
  renewTicket,
  type Ticket,
} from './ticket-queries.ts';
import { hashTicketText, makeTicketText } from './ticket-text.ts';

/** So long a ticket opens, from when it was made and after each break. */
export const ticketMs = 60_000;
/** Of an account; the one that would run out first is forgotten. */
const keptTickets = 1_000;

export type TicketDeps = {
  db: Sql;
  bus: Bus;
  clock: () => number;
  /** Whom a session or a key speaks for, by its identifier. Throws `unauthenticated` where it has ended. */
  findHolder: (holder: Pick<Ticket, 'accountId' | 'holderId' | 'isOfKey'>) => Promise<Account>;
};

/** What an open ticket is. */
export type Opening = {
  asked: NewStream;
  /** Rejects where the ticket may be open no longer, and prolongs it otherwise. */
  renew: () => Promise<void>;
  /** Aborts where it is opened once more. */
  signal: AbortSignal;
  /** From now on it opens for a minute. */
  close: () => void;
};

export type Tickets = {
  make: (account: Account, asked: NewStream) => Promise<{ ticket: string; expiresTs: number }>;
  /** Whose it is. Throws `unauthenticated`. */
  authenticate: (text: string) => Promise<Account>;
  /** Throws `unauthenticated`. */
  open: (text: string) => Promise<Opening>;
};

/**
 * Tickets open streams to who can send no header. They are looked up each time, with the session or the key
 * that made them: one that has ended opens nothing from then on, in any process. Of two openings the later goes
 * on: a browser that lost its way comes back before the break is seen here.
 */
export function createTickets({ db, bus, clock, findHolder }: TicketDeps): Tickets {
  async function find(text: string): Promise<{ hash: Buffer; ticket: Ticket }> {
    const hash = hashTicketText(text);
    const ticket = hash && (await findTicket(db, hash, clock()));
    if (!ticket) throw noSuchTicket();
    return { hash, ticket };
  }

  return {
    async make({ accountId, sessionId, key }, asked) {
      const ticket = makeTicketText();
      const hash = hashTicketText(ticket) ?? Buffer.alloc(0);
      const nowTs = clock();
      const expiresTs = nowTs + ticketMs;
      const made = { accountId, holderId: sessionId, isOfKey: key !== undefined, asked };
      await insertTicket(db, hash, made, { nowTs, expiresTs, kept: keptTickets });
      return { ticket, expiresTs };
    },

    authenticate: async (text) => findHolder((await find(text)).ticket),

    async open(text) {
      const { hash, ticket } = await find(text);
      const nowTs = clock();
      const opening = await countOpening(db, hash, { nowTs, expiresTs: nowTs + ticketMs });
      if (opening === null) throw noSuchTicket();
      const name = hash.toString('hex');
      const openedAgain = new AbortController();
      const end = bus.subscribe('ticket', (other) => {
        if (other.ticket === name && other.opening > opening) openedAgain.abort();
      });
      bus.publish('ticket', { ticket: name, opening });
      const renew = async (): Promise<void> => {
        if (!(await renewTicket(db, hash, opening, clock() + ticketMs))) throw noSuchTicket();
      };
      return {
        asked: ticket.asked,
        signal: openedAgain.signal,
        renew: async () => {
          await Promise.all([findHolder(ticket), renew()]);
        },
        close() {
          end();
          // Where the database is away the last renewal holds.
          void renew().catch(() => undefined);
        },
      };
    },
  };
}

function noSuchTicket(): DomainError {
  return new DomainError('unauthenticated', 'The ticket is unknown, or opens nothing any more.');
}
