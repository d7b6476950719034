import { createHash, randomBytes } from 'node:crypto';
import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Account } from '../http/request.ts';
import type { NewStream } from './schema.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

/** How long a ticket can be opened after it was made, and again after each disconnection. */
const ticketMs = 60_000;
/** Tickets per account. One more removes the ticket that would expire first. */
const keptTickets = 1_000;

export type TicketDeps = {
  db: Sql;
  bus: Bus;
  clock: Clock;
  /** Finds the account of a session or a key by its identifier. Throws `unauthenticated` if it has ended. */
  findHolder: (holder: Pick<Ticket, 'accountId' | 'holderId' | 'isOfKey'>) => Promise<Account>;
};

/** An open ticket. */
type Opening = {
  asked: NewStream;
  /** Extends the ticket. Rejects if it may no longer be open. */
  renew: () => Promise<void>;
  /** Aborts when the ticket is opened once more. */
  signal: AbortSignal;
  /** After this the ticket can be opened for another minute. */
  close: () => void;
};

export type Tickets = {
  make: (account: Account, asked: NewStream) => Promise<{ ticket: string; expiresTs: number }>;
  /** Finds the account of a ticket. Throws `unauthenticated`. */
  authenticate: (text: string) => Promise<Account>;
  /** Throws `unauthenticated`. */
  open: (text: string) => Promise<Opening>;
};

/**
 * Tickets open streams for clients that cannot send headers. Each use looks up the ticket and the session or key
 * that made it, so once that has ended, the ticket opens nothing in any process. If a ticket is opened twice, the
 * later opening wins: a browser that lost its connection returns before the service notices the break.
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
          // If the database is away, the last renewal counts.
          void renew().catch(() => undefined);
        },
      };
    },
  };
}

function noSuchTicket(): DomainError {
  return new DomainError('unauthenticated', 'The ticket is unknown or no longer valid.');
}

const prefix = 'stream_';
/** 256 bits as base64url. */
const pattern = /^stream_[\w-]{43}$/;

function makeTicketText(): string {
  return prefix + randomBytes(32).toString('base64url');
}

/** SHA-256 is enough, because a ticket is random and cannot be guessed. Null for text that cannot be a ticket. */
function hashTicketText(text: string): Buffer | null {
  return pattern.test(text) ? createHash('sha256').update(text).digest() : null;
}

/** A ticket's owner and what it opens. `holderId`: the identifier of the session or the key. */
type Ticket = {
  accountId: number;
  holderId: string;
  isOfKey: boolean;
  asked: NewStream;
};

/** Adds a ticket. Deletes the account's expired tickets, and those beyond `kept`. */
async function insertTicket(
  sql: Sql,
  hash: Buffer,
  { accountId, holderId, isOfKey, asked }: Ticket,
  { nowTs, expiresTs, kept }: { nowTs: WallMs; expiresTs: number; kept: number },
): Promise<void> {
  await sql.query(
    `with old as (
       delete from stream_ticket
        where hash in (
          select hash
            from (select hash, expires_at, row_number() over (order by expires_at desc) as place
                    from stream_ticket
                   where account_id = $2) ordered
           where expires_at <= ms_to_timestamp($6) or place >= $8))
     insert into stream_ticket (hash, account_id, holder_id, is_of_key, asked, expires_at)
     values ($1, $2, $3, $4, $5, ms_to_timestamp($7))`,
    [hash, accountId, holderId, isOfKey, JSON.stringify(asked), nowTs, expiresTs, kept],
  );
}

/** Null if there is none, or it has expired. */
async function findTicket(sql: Sql, hash: Buffer, nowTs: WallMs): Promise<Ticket | null> {
  const { rows } = await sql.query<Ticket>({
    name: 'find-stream-ticket',
    text: `
      select account_id as "accountId", holder_id as "holderId", is_of_key as "isOfKey", asked
        from stream_ticket
       where hash = $1 and expires_at > ms_to_timestamp($2)`,
    values: [hash, nowTs],
  });
  return rows[0] ?? null;
}

/** Returns the number of this opening; null if the ticket has expired meanwhile. */
async function countOpening(
  sql: Sql,
  hash: Buffer,
  { nowTs, expiresTs }: { nowTs: WallMs; expiresTs: number },
): Promise<number | null> {
  const { rows } = await sql.query<{ opened: number }>(
    `update stream_ticket
        set opened = opened + 1, expires_at = ms_to_timestamp($3)
      where hash = $1 and expires_at > ms_to_timestamp($2)
      returning opened`,
    [hash, nowTs, expiresTs],
  );
  return rows[0]?.opened ?? null;
}

/** False if the ticket was opened again since, or is gone. */
async function renewTicket(
  sql: Sql,
  hash: Buffer,
  opening: number,
  expiresTs: number,
): Promise<boolean> {
  const { rowCount } = await sql.query(
    `update stream_ticket set expires_at = ms_to_timestamp($3) where hash = $1 and opened = $2`,
    [hash, opening, expiresTs],
  );
  return rowCount === 1;
}

/** Deletes expired tickets, also of accounts that make no new ones. */
export async function forgetTickets(sql: Sql, nowTs: WallMs): Promise<void> {
  await sql.query('delete from stream_ticket where expires_at < ms_to_timestamp($1)', [nowTs]);
}
