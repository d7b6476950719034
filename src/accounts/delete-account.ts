import type { Database } from '../db/database.ts';
import { giveWay, haltIngest } from '../db/locks.ts';
import type { Sql } from '../db/sql.ts';
import type { Asker } from '../lib/fair-turns.ts';
import { lockUsage } from '../quotas/quotas.ts';
import type { FairQueue } from './fair-queue.ts';

export type DeleteAccountDeps = {
  db: Database;
  /** A few at a time, in turns: the work inside the transaction may need a second connection. */
  inTurn: FairQueue;
  revokeSessions: (accountId: number) => Promise<void>;
  /** Deletes what of the account names people, as far as one transaction may. */
  forgetPersons: (tx: Sql, accountId: number) => Promise<void>;
  /** After the commit: every process is to know it, and what belonged to the account is to be deleted. */
  onAccountRemoved: (accountId: number) => void;
};

/**
 * Specification 4.2, Delete Account: everything bound to it goes. The account is marked, and from the commit on
 * nobody finds it, nor anything of it; its address is free. Its sessions end before that, so that no token outlives
 * it; with their store away nothing happens at all (`unavailable`). The rows are then deleted piece by piece, however
 * many they are (`history/clear-removed.ts`). Throws `unauthenticated` where it was removed before.
 */
export async function deleteAccount(
  deps: DeleteAccountDeps,
  accountId: number,
  turn: Asker,
): Promise<void> {
  // All of it again where it had to give way: ingest may wait for rows that were deleted here.
  await deps.inTurn(turn, () =>
    giveWay((waitMs) =>
      deps.db.transaction(async (tx) => {
        await lockAccount(tx, accountId);
        // Inserts for the account wait for this lock, and then find the account gone.
        await lockUsage(tx, accountId);
        await deps.revokeSessions(accountId);
        await deps.forgetPersons(tx, accountId);
        await haltIngest(tx, waitMs);
        await markAccount(tx, accountId);
      }),
    ),
  );
  deps.onAccountRemoved(accountId);
}

/** A login that is under way waits, and then finds its account changed or gone. */
export async function lockAccount(tx: Sql, accountId: number): Promise<void> {
  await tx.query(
    `
      select from account
      where id = $1
      for no key update
    `,
    [accountId],
  );
}

/** Its row names nobody, and nothing finds it by what it was. */
async function markAccount(tx: Sql, accountId: number): Promise<void> {
  await tx.query(
    `
      with closed as (
        update account_usage set is_closed = true where account_id = $1
      )
      update account
      set removed_at = now(), disabled_at = coalesce(disabled_at, now()), uuid = gen_random_uuid(),
        email = '', email_normal = null, password_hash = '', name = null, apn = '[]',
        may_send_sms = false, time_zone = null, language = null
      where id = $1
    `,
    [accountId],
  );
}
