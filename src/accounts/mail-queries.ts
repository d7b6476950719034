import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { mailboxOf } from '../lib/mailbox.ts';
import { normalizeEmail } from './email.ts';

/** `reset` and `confirm-email` have a link; the others say what was done. */
export type MailKind = 'reset' | 'confirm-email' | 'password-reset' | 'email-changed';

/** `accountId` null: somebody who is not logged in asked; whether there is such an account was not looked up yet. */
export type NewMail = {
  kind: MailKind;
  accountId: number | null;
  recipient: string;
  /** The client's address, of what was asked for. */
  address: string | null;
  ts: number;
};

export type QueuedMail = Omit<NewMail, 'ts'> & { id: number; createdTs: number; attempts: number };

const hourMs = 3_600_000;
/** The first number of the locks that are taken here. */
const mailLock = 21;
/** Mails with links of one kind in an hour to whom `countedAs` says, whoever asks for them. */
const linksPerRecipient = 3;
/** Addresses that an account may have asked to confirm in an hour. */
const linksPerAccount = 10;

/**
 * Confirmations count for the mailbox, which may be a stranger's. Links for a new password count for the address alone, and
 * apart: whoever has an account could else use them up for others, and keep them from getting back into theirs.
 */
const countedAs = ({ kind, recipient }: Pick<NewMail, 'kind' | 'recipient'>) =>
  kind === 'confirm-email' ? mailboxOf(recipient) : normalizeEmail(recipient);

export async function insertMail(tx: Sql, mail: NewMail): Promise<void> {
  const { kind, accountId, recipient, address, ts } = mail;
  await tx.query(
    `insert into account_mail
       (kind, account_id, recipient, recipient_normal, address, created_at, due_at)
     values ($1, $2, $3, $4, $5, ms_to_timestamp($6), ms_to_timestamp($6))`,
    [kind, accountId, recipient, countedAs(mail), address, ts],
  );
}

/**
 * Queues a mail with a link, unless its recipient had enough of its kind within the hour. It takes as long, and
 * leaves as much behind, whether there is such an account or not.
 */
export async function queueLinkMail(tx: Sql, mail: NewMail): Promise<void> {
  const recipient = countedAs(mail);
  // Those to one address one after the other: each counts those before it. Of two numbers, so that no
  // address that somebody makes up is the number of another lock of this service.
  await tx.query('select pg_advisory_xact_lock($1, hashtext($2))', [mailLock, recipient]);
  const { rows } = await tx.query<{ used: number }>(
    `select count(*) as used from account_mail
      where recipient_normal = $1 and kind = $3
        and coalesce(done_at, created_at) > ms_to_timestamp($2)`,
    [recipient, mail.ts - hourMs, mail.kind],
  );
  if ((rows[0]?.used ?? 0) < linksPerRecipient) await insertMail(tx, mail);
}

/** Whether the account may have another address asked for confirmation. */
export async function mayAskForEmail(tx: Sql, accountId: number, ts: number): Promise<boolean> {
  const { rows } = await tx.query<{ used: number }>(
    `select count(*) as used from account_mail
      where account_id = $1 and kind = 'confirm-email' and created_at > ms_to_timestamp($2)`,
    [accountId, ts - hourMs],
  );
  return (rows[0]?.used ?? 0) < linksPerAccount;
}

/** Those that are due, for this process alone until `leaseMs` have passed. */
export async function takeDueMails(
  db: Sql,
  { nowMs, limit, leaseMs }: { nowMs: number; limit: number; leaseMs: number },
): Promise<QueuedMail[]> {
  const { rows } = await db.query<QueuedMail>(
    `with due as (
       select id from account_mail
        where done_at is null and due_at <= ms_to_timestamp($1)
          and coalesce(busy_until, '-infinity') <= ms_to_timestamp($1)
        order by due_at limit $2
          for update skip locked
     )
     update account_mail m
        set busy_until = ms_to_timestamp($1 + $3), attempts = attempts + 1
       from due where m.id = due.id
     returning m.id, kind, account_id as "accountId", recipient, address,
               created_at as "createdTs", attempts`,
    [nowMs, limit, leaseMs],
  );
  return rows;
}

/** It is over: sent, given up, or for nobody. `dueTs`: it is tried again then. */
export async function settleMail(
  db: Sql,
  id: number,
  { nowMs, dueTs }: { nowMs: number; dueTs: number | null },
): Promise<void> {
  await db.query(
    `update account_mail
        set busy_until = null, due_at = coalesce(ms_to_timestamp($3), due_at),
            done_at = case when $3::bigint is null then ms_to_timestamp($2) end
      where id = $1`,
    [id, nowMs, dueTs],
  );
}

/** Forgets what counts no more. */
export async function forgetOldMails(db: Pick<Database, 'query'>, nowMs: number): Promise<void> {
  await db.query(
    'delete from account_mail where coalesce(done_at, created_at) < ms_to_timestamp($1)',
    [nowMs - 2 * hourMs],
  );
}
