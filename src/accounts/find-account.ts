import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { normalizeEmail } from './email.ts';

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

/** Null when there is no such account. */
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
