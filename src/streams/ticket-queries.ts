import type { Sql } from '../db/sql.ts';
import type { NewStream } from './schema.ts';

/** Whose a ticket is, and what it opens. `holderId`: the session's or the key's. */
export type Ticket = {
  accountId: number;
  holderId: string;
  isOfKey: boolean;
  asked: NewStream;
};

/** Adds one; of those of the account that have run out, and of more than `kept`, none stays. */
export async function insertTicket(
  sql: Sql,
  hash: Buffer,
  { accountId, holderId, isOfKey, asked }: Ticket,
  { nowTs, expiresTs, kept }: { nowTs: number; expiresTs: number; kept: number },
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

/** Null where there is none, or it has run out. */
export async function findTicket(sql: Sql, hash: Buffer, nowTs: number): Promise<Ticket | null> {
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

/** Gives the number of this opening; null where the ticket has run out meanwhile. */
export async function countOpening(
  sql: Sql,
  hash: Buffer,
  { nowTs, expiresTs }: { nowTs: number; expiresTs: number },
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

/** False where it was opened again since, or is gone. */
export async function renewTicket(
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

/** Deletes those that ran out: of accounts that make no others. */
export async function forgetTickets(sql: Sql, nowTs: number): Promise<void> {
  await sql.query('delete from stream_ticket where expires_at < ms_to_timestamp($1)', [nowTs]);
}
