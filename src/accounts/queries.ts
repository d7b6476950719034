import type { Sql } from '../db/sql.ts';
import { normalizeEmail } from './email.ts';
import { accountColumns, type AccountRow } from './find-account.ts';
import type { AccountEvent, AccountUpdate } from './schema.ts';

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
