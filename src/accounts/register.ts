import type { DoneBy } from '../audit/entry.ts';
import { insertEntry } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import type { Passwords } from './passwords.ts';
import type { AccountRow } from './find-account.ts';
import { insertAccount, insertAccountEvent } from './queries.ts';
import type { NewCredentials } from './schema.ts';
import { turnOf } from './login-limits.ts';

export type RegisterAccountDeps = { db: Database; passwords: Passwords };

/**
 * Specification 4.2, Register New Account; `maySendSms`: the operator makes it, and SMS are sent for it.
 * Throws `conflict` when the e-mail address is taken.
 */
export async function registerAccount(
  { db, passwords }: RegisterAccountDeps,
  { email, password, address }: NewCredentials & { address: string },
  { actor, ts, maySendSms }: DoneBy & { maySendSms?: boolean },
): Promise<AccountRow> {
  const passwordHash = await passwords.hash(password, turnOf(email, address));
  return db.transaction(async (tx) => {
    const account = await insertAccount(tx, { email, passwordHash, maySendSms });
    if (!account)
      throw new DomainError('conflict', 'There is an account with this e-mail address.');
    await insertAccountEvent(tx, account.accountId, 'register', ts);
    await insertEntry(tx, account.accountId, { kind: 'registered', actor, ts });
    return account;
  });
}
