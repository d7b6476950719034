import type { DoneBy } from '../audit/entry.ts';
import { insertEntry } from '../audit/audit.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';

export type EndSessionDeps = {
  db: Sql;
  revokeSession: (accountId: number, sessionId: string) => Promise<boolean>;
};

/**
 * Ends a session, and writes down who did. Throws `not-found` where the account has no such session. Where
 * sessions are kept in Redis there is no transaction for both: what is said is never more than was done.
 */
export async function endSession(
  { db, revokeSession }: EndSessionDeps,
  accountId: number,
  id: string,
  by: DoneBy,
): Promise<void> {
  if (!(await revokeSession(accountId, id)))
    throw new DomainError('not-found', 'There is no such session.');
  const details = { session: id, reason: 'asked' };
  await insertEntry(db, accountId, { kind: 'session-ended', ...by, details });
}
