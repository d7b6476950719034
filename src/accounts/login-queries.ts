import { entryValues, insertEntryFrom } from '../audit/entry.ts';
import type { Sql } from '../db/sql.ts';
import type { AccountRow } from './find-account.ts';

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
