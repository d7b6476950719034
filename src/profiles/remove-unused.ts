import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { lockUsage } from '../quotas/quotas.ts';
import { awaiting, needed } from './transition-sql.ts';

/** What of the account's profiles no device has any more is removed; its usage is locked (`lockUsage`). */
export async function removeUnused(tx: Sql, accountId: number): Promise<void> {
  await tx.query(
    `
      with used as (
        select p.content_id
          from device d
          join device_profile w on w.device_id = d.id and w.state in ${awaiting}
          join profile p on p.id = w.profile_id
         where d.account_id = $1
         union
        select p.content_id
          from device d
          join device_profile c on c.device_id = d.id and c.state = 'current'
          join profile p on p.id = c.profile_id
         where d.account_id = $1
      ), gone as (
        delete from profile_content
         where account_id = $1
           and not exists (select from used where content_id = profile_content.id)
        returning bytes
      )
      update account_usage
         set profiles = greatest(0, profiles - (select count(*) from gone)),
             profile_bytes = greatest(0, profile_bytes - (select coalesce(sum(bytes), 0) from gone))
       where account_id = $1`,
    [accountId],
  );
}

/** The same for all accounts, one after another. */
export async function removeUnusedProfiles(db: Database, signal: AbortSignal): Promise<void> {
  for (const accountId of await listOwners(db)) {
    if (signal.aborted) return;
    await db
      .transaction(async (tx) => {
        await lockUsage(tx, accountId);
        await removeUnused(tx, accountId);
      })
      .catch(ignoreGone);
  }
}

/** The account was deleted meanwhile, with its profiles. */
function ignoreGone(error: unknown): void {
  if (!(error instanceof DomainError && error.code === 'unauthenticated')) throw error;
}

/** Those with something that no device has, as far as can be seen without a lock. */
async function listOwners(db: Sql): Promise<number[]> {
  const { rows } = await db.query<{ account_id: number }>(
    `
      select distinct c.account_id
        from profile_content c
       where not exists (
         select from profile p
           join device_profile d on d.profile_id = p.id
          where p.content_id = c.id and d.state in ${needed})`,
  );
  return rows.map(({ account_id }) => account_id);
}
