import { operator } from '../audit/entry.ts';
import { insertEntry } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import { lockAccount } from './delete-account.ts';
import { setDisabled } from './disabled-queries.ts';

export type DisableAccountDeps = {
  db: Database;
  revokeSessions: (accountId: number) => Promise<void>;
};

/**
 * Shuts an account out: its sessions end with the commit, its devices within a second of it, when the
 * processes have seen it. Nothing is deleted. With the session store away nothing happens
 * (`unavailable`). False when it was disabled before; what may have begun meanwhile ends all the same.
 */
export async function disableAccount(
  { db, revokeSessions }: DisableAccountDeps,
  accountId: number,
  ts: number,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    // A login that is under way waits, and then finds its account disabled.
    await lockAccount(tx, accountId);
    const isNew = await setDisabled(tx, accountId, ts);
    if (isNew) await insertEntry(tx, accountId, { kind: 'disabled', actor: operator, ts });
    await revokeSessions(accountId);
    return isNew;
  });
}

/** Lets the account in again: its devices with the tokens that they have. False when it was not disabled. */
export async function enableAccount(
  { db }: Pick<DisableAccountDeps, 'db'>,
  accountId: number,
  ts: number,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const isNew = await setDisabled(tx, accountId, null);
    if (isNew) await insertEntry(tx, accountId, { kind: 'enabled', actor: operator, ts });
    return isNew;
  });
}
