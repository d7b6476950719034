import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { ingestLock } from '../db/locks.ts';
import { lockUsage } from '../quotas/queries.ts';
import type { WorkQueue } from './work-queue.ts';

export type GoneDevice = { deviceId: number; uuid: string };

export type DeleteAccountDeps = {
  db: Database;
  /** One at a time: the work inside the transaction may need a second connection. */
  exclusively: WorkQueue;
  revokeSessions: (accountId: number) => Promise<void>;
  /** After the commit: close their connections, clear their history. */
  onDevicesRemoved: (devices: GoneDevice[]) => Promise<void>;
};

/**
 * Specification 4.2, Delete Account: everything bound to it goes. Its sessions end before it does, so
 * that no token outlives it; with their store away nothing happens at all (`unavailable`).
 */
export async function deleteAccount(deps: DeleteAccountDeps, accountId: number): Promise<void> {
  const devices = await deps.exclusively(() =>
    deps.db.transaction(async (tx) => {
      await lockAccount(tx, accountId);
      await deps.revokeSessions(accountId);
      return deleteRows(tx, accountId);
    }),
  );
  if (devices.length > 0) await deps.onDevicesRemoved(devices);
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

async function deleteRows(tx: Sql, accountId: number): Promise<GoneDevice[]> {
  // Inserts for the account wait for this lock, and then find the account gone.
  await lockUsage(tx, accountId);
  await tx.query('select pg_advisory_xact_lock($1)', [ingestLock]);
  const { rows } = await tx.query<GoneDevice>(
    `
      delete from device
      where account_id = $1
      returning id as "deviceId", uuid
    `,
    [accountId],
  );
  await tx.query(
    `
      delete from account
      where id = $1
    `,
    [accountId],
  );
  return rows;
}
