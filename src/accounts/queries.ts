import { createHash } from 'node:crypto';
import { entryValues, insertEntryFrom } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { mailboxOf } from '../lib/address.ts';
import type { AccountEvent, AccountUpdate } from './schema.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Null if the e-mail address is taken; case does not matter. */
export async function insertAccount(
  sql: Sql,
  {
    email,
    passwordHash,
    maySendSms = false,
  }: { email: string; passwordHash: string; maySendSms?: boolean | undefined },
): Promise<AccountRow | null> {
  const { rows } = await sql.query<AccountRow>(
    `
      insert into account (email, email_normal, password_hash, may_send_sms)
      values ($1, $2, $3, $4)
      on conflict (email_normal) do nothing
      returning ${accountColumns}
    `,
    [email, normalizeEmail(email), passwordHash, maySendSms],
  );
  return rows[0] ?? null;
}

export async function updateAccount(
  sql: Sql,
  accountId: number,
  { name, apn, timeZone, language }: AccountUpdate,
): Promise<void> {
  await sql.query(
    `
      update account
      set name = coalesce($2, name), apn = coalesce($3::jsonb, apn),
          time_zone = coalesce($4, time_zone), language = coalesce($5, language)
      where id = $1
    `,
    [
      accountId,
      name ?? null,
      apn === undefined ? null : JSON.stringify(apn),
      timeZone ?? null,
      language ?? null,
    ],
  );
}

/** False if `oldHash` is no longer the current password's. */
export async function updatePassword(
  sql: Sql,
  { accountId, oldHash, newHash }: { accountId: number; oldHash: string; newHash: string },
): Promise<boolean> {
  const { rowCount } = await sql.query(
    `
      update account
      set password_hash = $3
      where id = $1 and password_hash = $2
    `,
    [accountId, oldHash, newHash],
  );
  return rowCount === 1;
}

export async function insertAccountEvent(
  sql: Sql,
  accountId: number,
  event: AccountEvent['event'],
  ts: number,
): Promise<void> {
  await sql.query(
    `
      insert into account_event (account_id, ts, event)
      select id, ms_to_timestamp($3), $2
      from account
      where id = $1
    `,
    [accountId, event, ts],
  );
}

export type AccountRow = {
  accountId: number;
  accountUuid: string;
  email: string;
  passwordHash: string;
  /** The operator has disabled it. */
  isDisabled: boolean;
};

/** The select list of an `AccountRow`. */
const accountColumns = `
  id as "accountId", uuid as "accountUuid", email, password_hash as "passwordHash",
  disabled_at is not null as "isDisabled"
`;

/** Null if there is no such account. */
export async function findAccount(
  sql: Sql,
  by: { uuid: string } | { accountId: number },
): Promise<AccountRow | null> {
  const [where, value] = 'uuid' in by ? ['uuid', by.uuid] : ['id', by.accountId];
  const { rows } = await sql.query<AccountRow>(
    `select ${accountColumns} from account where ${where} = $1`,
    [value],
  );
  return rows[0] ?? null;
}

/**
 * By the normalized address; or by the exact text, for an account whose normalized address another one already had when
 * normalization was introduced.
 */
export async function findAccountByEmail(sql: Sql, email: string): Promise<AccountRow | null> {
  const { rows } = await sql.query<AccountRow>(
    `
      select ${accountColumns}
      from account
      where email_normal in ($1, $2)
      order by email_normal = $2 desc
      limit 1
    `,
    [normalizeEmail(email), email],
  );
  return rows[0] ?? null;
}

type Described = { name: string | null; timeZone: string | null; language: 'en' | 'de' | null };

/** Throws `unauthenticated` if the account was removed after its token was checked. */
export async function getAccount(sql: Sql, accountId: number): Promise<AccountRow & Described> {
  const { rows } = await sql.query<AccountRow & Described>(
    `
      select ${accountColumns}, name, time_zone as "timeZone", language
      from account
      where id = $1
    `,
    [accountId],
  );
  if (!rows[0]) throw new DomainError('unauthenticated', 'The account no longer exists.');
  return rows[0];
}

/**
 * The normalized e-mail address, by which accounts are found and failed logins are counted. Only this function computes
 * it, and it is stored: the database's `lower` depends on its locale, and where the two differ (U+0130 and `i`) failed
 * logins would count for no account.
 */
export function normalizeEmail(email: string): string {
  return email.toLowerCase();
}

/**
 * The key of an account in counters and queues. Strangers choose what they send: hashing makes all keys equally long,
 * and no store shows who logs in.
 */
export function accountKey(email: string): string {
  return createHash('sha256').update(normalizeEmail(email)).digest('base64url').slice(0, 22);
}

/** The address that an account gets once it is confirmed. */
export type EmailChangeRow = { accountId: number; uuid: string; email: string; expiresTs: number };

const columns = `account_id as "accountId", uuid, email, expires_at as "expiresTs"`;

/** Replaces a change that was requested before. */
export async function saveEmailChange(
  tx: Sql,
  { accountId, email, expiresTs }: Omit<EmailChangeRow, 'uuid'>,
): Promise<void> {
  await tx.query(
    `insert into email_change (account_id, email, expires_at)
     values ($1, $2, ms_to_timestamp($3))
     on conflict (account_id) do update
        set uuid = gen_random_uuid(), email = excluded.email, expires_at = excluded.expires_at`,
    [accountId, email, expiresTs],
  );
}

/** Null if no change was requested, or if it was confirmed, dropped or replaced since. */
export async function findEmailChange(
  sql: Sql,
  by: { uuid: string } | { accountId: number },
): Promise<EmailChangeRow | null> {
  const { rows } = await sql.query<EmailChangeRow>(
    `select ${columns} from email_change where uuid = $1 or account_id = $2`,
    ['uuid' in by ? by.uuid : null, 'accountId' in by ? by.accountId : null],
  );
  return rows[0] ?? null;
}

/** Takes the change, so that nobody else can; null if somebody did. */
export async function takeEmailChange(tx: Sql, uuid: string): Promise<EmailChangeRow | null> {
  const { rows } = await tx.query<EmailChangeRow>(
    `delete from email_change where uuid = $1 returning ${columns}`,
    [uuid],
  );
  return rows[0] ?? null;
}

export async function dropEmailChange(tx: Sql, accountId: number): Promise<void> {
  await tx.query('delete from email_change where account_id = $1', [accountId]);
}

/** Whether another account has the address. */
export async function isEmailTaken(sql: Sql, accountId: number, email: string): Promise<boolean> {
  const { rows } = await sql.query<{ taken: boolean }>(
    'select exists (select from account where email_normal = $2 and id <> $1) as taken',
    [accountId, normalizeEmail(email)],
  );
  return rows[0]?.taken ?? false;
}

export async function updateEmail(tx: Sql, accountId: number, email: string): Promise<void> {
  await tx.query('update account set email = $2, email_normal = $3 where id = $1', [
    accountId,
    email,
    normalizeEmail(email),
  ]);
}

type ListedAccount = {
  email: string;
  accountUuid: string;
  createdTs: number;
  disabledTs: number | null;
  devices: number;
};

export async function listAccounts(sql: Sql): Promise<ListedAccount[]> {
  const { rows } = await sql.query<ListedAccount>(`
    select account.email, account.uuid as "accountUuid", account.created_at as "createdTs",
      account.disabled_at as "disabledTs",
      (select count(*) from device where device.account_id = account.id) as devices
    from account
    where removed_at is null
    order by account.email_normal
  `);
  return rows;
}

export async function listAccountIds(sql: Sql): Promise<number[]> {
  const { rows } = await sql.query<{ id: number }>(`
    select id
    from account
    where removed_at is null
    order by id
  `);
  return rows.map(({ id }) => id);
}

/** Whether any account exists. */
export async function hasAccounts(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ has: boolean }>(
    'select exists (select from account where removed_at is null) as has',
  );
  return rows[0]?.has === true;
}

/** Where a page ends: the next one begins right after it. */
type AccountEventCursor = { ts: number; id: number };

type EventsQuery = {
  limit: number;
  /** Inclusive, ms. */
  start?: number | undefined;
  end?: number | undefined;
  cursor?: AccountEventCursor | undefined;
};

type EventsPage = { events: AccountEvent[]; next: AccountEventCursor | null };

/** Newest first, and by id within a millisecond, so that pages neither skip nor repeat events. */
export async function listAccountEvents(
  sql: Sql,
  { accountId, accountUuid }: { accountId: number; accountUuid: string },
  { limit, start, end, cursor }: EventsQuery,
): Promise<EventsPage> {
  const { rows } = await sql.query<AccountEventCursor & Pick<AccountEvent, 'event'>>(
    `
      select id, ts, event
      from account_event
      where account_id = $1
        and ts >= ms_to_timestamp($2)
        and ($3::bigint is null or ts <= ms_to_timestamp($3))
        and ($4::bigint is null or (ts, id) < (ms_to_timestamp($4), $5::bigint))
      order by ts desc, id desc
      limit $6
    `,
    [accountId, start ?? 0, end ?? null, cursor?.ts ?? null, cursor?.id ?? null, limit + 1],
  );
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    events: page.map(({ ts, event }) => ({
      timestamp: ts,
      type: 'account',
      event,
      accountAuthUuid: accountUuid,
    })),
    next: rows.length > limit && last ? { ts: last.ts, id: last.id } : null,
  };
}

/** A session that begins, and from where. `userAgent`: '' if there was none. */
type NewLogin = { ts: number; sessionId: string; address: string; userAgent: string };

/**
 * Records a login, unless the account was removed or disabled, or its password changed, since it was verified. Waits
 * for a change under way.
 */
export async function insertLogin(
  sql: Sql,
  { accountId, passwordHash }: AccountRow,
  { ts, sessionId, address, userAgent }: NewLogin,
): Promise<boolean> {
  const actor = { by: 'session', sessionId, address } as const;
  const details = userAgent === '' ? {} : { details: { userAgent } };
  const { rowCount } = await sql.query(
    `
      with owner as (
        select id as account_id
        from account
        where id = $1 and password_hash = $2 and disabled_at is null
        for share
      ), logged as (
        insert into account_event (account_id, ts, event)
        select account_id, ms_to_timestamp($3), 'login'
        from owner
      ), audited as (${insertEntryFrom('owner', 3)})
      select from owner
    `,
    [accountId, passwordHash, ...entryValues({ kind: 'login', actor, ts, ...details })],
  );
  return rowCount === 1;
}

/** Where sessions were started from, by session, for logins that are still in the audit trail. */
export async function listLogins(
  sql: Sql,
  accountId: number,
): Promise<Map<string, { address?: string; userAgent?: string }>> {
  const { rows } = await sql.query<{
    sessionId: string;
    address: string | null;
    userAgent: string | null;
  }>(
    `
      select session_id as "sessionId", address, details->>'userAgent' as "userAgent"
      from account_audit
      where account_id = $1 and kind = 'login' and session_id is not null
    `,
    [accountId],
  );
  return new Map(
    rows.map(({ sessionId, address, userAgent }) => [
      sessionId,
      { ...(address === null ? {} : { address }), ...(userAgent === null ? {} : { userAgent }) },
    ]),
  );
}

/** `reset` and `confirm-email` contain a link; the others report what was done. */
type MailKind = 'reset' | 'confirm-email' | 'password-reset' | 'email-changed';

/** `accountId` null: requested without a login, and nothing has yet looked up whether the account exists. */
type NewMail = {
  kind: MailKind;
  accountId: number | null;
  recipient: string;
  /** The address of the client that requested it. */
  address: string | null;
  ts: number;
};

export type QueuedMail = Omit<NewMail, 'ts'> & { id: number; createdTs: number; attempts: number };

const hourMs = 3_600_000;
/** First number of this file's advisory locks. */
const mailLock = 21;
/** Mails with links of one kind in an hour, for each value of `countedAs`, whoever requests them. */
const linksPerRecipient = 3;
/** Addresses that an account may ask to confirm in an hour. */
const linksPerAccount = 10;

/**
 * Confirmations count for the mailbox, which may be a stranger's. Links for a new password count for the exact address,
 * and separately: otherwise somebody with an account could use up the limit of others, and keep them from recovering
 * their accounts.
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
 * Queues a mail with a link, unless its recipient had enough of this kind within the hour. It takes as long, and stores
 * as much, whether or not such an account exists.
 */
export async function queueLinkMail(tx: Sql, mail: NewMail): Promise<void> {
  const recipient = countedAs(mail);
  // Mails to one address are queued one after the other, so that each counts those before it. The lock has two numbers,
  // so that no address can collide with another lock of this service.
  await tx.query('select pg_advisory_xact_lock($1, hashtext($2))', [mailLock, recipient]);
  const { rows } = await tx.query<{ used: number }>(
    `select count(*) as used from account_mail
      where recipient_normal = $1 and kind = $3
        and coalesce(done_at, created_at) > ms_to_timestamp($2)`,
    [recipient, mail.ts - hourMs, mail.kind],
  );
  if ((rows[0]?.used ?? 0) < linksPerRecipient) await insertMail(tx, mail);
}

/** Whether the account may ask another address to confirm. */
export async function mayAskForEmail(tx: Sql, accountId: number, ts: number): Promise<boolean> {
  const { rows } = await tx.query<{ used: number }>(
    `select count(*) as used from account_mail
      where account_id = $1 and kind = 'confirm-email' and created_at > ms_to_timestamp($2)`,
    [accountId, ts - hourMs],
  );
  return (rows[0]?.used ?? 0) < linksPerAccount;
}

/** Takes mails that are due; no other process takes them until `leaseMs` have passed. */
export async function takeDueMails(
  db: Sql,
  { nowTs, limit, leaseMs }: { nowTs: WallMs; limit: number; leaseMs: number },
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
    [nowTs, limit, leaseMs],
  );
  return rows;
}

/** The mail is done: sent, given up, or without a recipient. `dueTs`: it is tried again then. */
export async function settleMail(
  db: Sql,
  id: number,
  { nowTs, dueTs }: { nowTs: WallMs; dueTs: number | null },
): Promise<void> {
  await db.query(
    `update account_mail
        set busy_until = null, due_at = coalesce(ms_to_timestamp($3), due_at),
            done_at = case when $3::bigint is null then ms_to_timestamp($2) end
      where id = $1`,
    [id, nowTs, dueTs],
  );
}

/** Deletes mails that no longer count. */
export async function forgetOldMails(db: Pick<Database, 'query'>, nowTs: WallMs): Promise<void> {
  await db.query(
    'delete from account_mail where coalesce(done_at, created_at) < ms_to_timestamp($1)',
    [nowTs - 2 * hourMs],
  );
}

export async function allowSms(sql: Sql, accountId: number, may: boolean): Promise<void> {
  await sql.query('update account set may_send_sms = $2 where id = $1', [accountId, may]);
}
