import { entryValues, insertEntryFrom } from '../audit/entry.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { normalizeEmail } from './email.ts';
import type { AccountEvent, AccountUpdate } from './schema.ts';

export type AccountRow = {
  accountId: number;
  accountUuid: string;
  email: string;
  passwordHash: string;
  /** The operator has shut it out. */
  isDisabled: boolean;
};

/** What an `AccountRow` is read from. */
export const accountColumns = `
  id as "accountId", uuid as "accountUuid", email, password_hash as "passwordHash",
  disabled_at is not null as "isDisabled"
`;

/** Null when the e-mail address is taken, in whatever case. */
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

/** Whether SMS are sent for the account, where not for all. */
export async function maySendSms(sql: Sql, accountId: number): Promise<boolean> {
  const { rows } = await sql.query<{ may: boolean }>(
    'select may_send_sms as may from account where id = $1',
    [accountId],
  );
  return rows[0]?.may ?? false;
}

export async function allowSms(sql: Sql, accountId: number, may: boolean): Promise<void> {
  await sql.query('update account set may_send_sms = $2 where id = $1', [accountId, may]);
}

/**
 * By its normal form; or by exactly what was given, for an account whose normal form another had
 * already when normal forms came.
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

/** Throws `unauthenticated` when the account has gone since its token was looked at. */
export async function getAccount(sql: Sql, accountId: number): Promise<AccountRow & Described> {
  const { rows } = await sql.query<AccountRow & Described>(
    `
      select ${accountColumns}, name, time_zone as "timeZone", language
      from account
      where id = $1
    `,
    [accountId],
  );
  if (!rows[0]) throw new DomainError('unauthenticated', 'The account is gone.');
  return rows[0];
}

/** Whether anybody has an account yet. */
export async function hasAccounts(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ has: boolean }>('select exists (select from account) as has');
  return rows[0]?.has === true;
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

/** False when the password is not the one behind `oldHash` any more. */
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

/** A session that begins, and from where. `userAgent`: '' where the program said none. */
export type NewLogin = { ts: number; sessionId: string; address: string; userAgent: string };

/**
 * Records a login, unless the account has gone or was disabled, or its password changed, since it was
 * verified. Waits for a change that is under way.
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

/** From where sessions began, by session: of logins that the audit trail still has. */
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

export type ListedAccount = {
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
    order by account.email_normal
  `);
  return rows;
}

export async function listAccountIds(sql: Sql): Promise<number[]> {
  const { rows } = await sql.query<{ id: number }>(`
    select id
    from account
    order by id
  `);
  return rows.map(({ id }) => id);
}
