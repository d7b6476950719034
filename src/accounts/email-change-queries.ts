import type { Sql } from '../db/sql.ts';
import { normalizeEmail } from './email.ts';

/** The address that an account is to have once it is confirmed. */
export type EmailChangeRow = { accountId: number; uuid: string; email: string; expiresTs: number };

const columns = `account_id as "accountId", uuid, email, expires_at as "expiresTs"`;

/** In place of one that was asked for before. */
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

/** Null where nothing was asked for, or it was done, dropped or replaced since. */
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

/** Takes the change, so that nobody else does: null where somebody did. */
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
