import type { Purpose } from '../contract/purpose.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { limitOf, lockUsage } from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';

type PurposeQuotas = Pick<QuotaSettings, 'purposes' | 'purposeBytes'>;

/** A purpose as it is kept. */
export type PurposeText = { name: string; body: string; bytes: number };

export function toText(purpose: Purpose): PurposeText {
  const body = JSON.stringify(purpose);
  return { name: nameOf(purpose), body, bytes: Buffer.byteLength(body) };
}

/** The new purpose's identifier; null beyond a quota, and where the account is gone. */
export async function insertPurpose(
  db: Sql,
  accountId: number,
  { name, body, bytes }: PurposeText,
  quotas: PurposeQuotas,
): Promise<string | null> {
  const { rows } = await db.query<{ id: string }>(
    `
      with allowed as (
        select ${limitOf('$1', 'purposes', '$5')} as purposes,
               ${limitOf('$1', 'purposeBytes', '$6')} as bytes
      ), counted as (
        insert into account_usage as u (account_id, purposes, purpose_bytes)
        select account.id, 1, $4::bigint
          from account, allowed
         where account.id = $1 and account.removed_at is null and $4::bigint <= allowed.bytes
        on conflict (account_id) do update
           set purposes = u.purposes + 1, purpose_bytes = u.purpose_bytes + excluded.purpose_bytes
         where not u.is_closed and u.purposes < (select purposes from allowed)
           and u.purpose_bytes + excluded.purpose_bytes <= (select bytes from allowed)
        returning account_id
      )
      insert into purpose (account_id, name, body, bytes)
      select account_id, $2, $3::text::json, $4 from counted
      returning id`,
    [accountId, name, body, bytes, quotas.purposes, quotas.purposeBytes],
  );
  return rows[0]?.id ?? null;
}

/** Null when the account has no such purpose. */
export async function findPurpose(
  db: Sql,
  accountId: number,
  purposeId: string,
): Promise<Purpose | null> {
  const { rows } = await db.query<{ body: Purpose }>(
    'select body from purpose where id = $2 and account_id = $1',
    [accountId, purposeId],
  );
  return rows[0]?.body ?? null;
}

/** How much longer it would become; null when the account has no such purpose. */
export async function findGrowth(
  db: Sql,
  accountId: number,
  purposeId: string,
  { bytes }: PurposeText,
): Promise<number | null> {
  const { rows } = await db.query<{ growth: number }>(
    'select $3::integer - bytes as growth from purpose where id = $2 and account_id = $1',
    [accountId, purposeId, bytes],
  );
  return rows[0]?.growth ?? null;
}

/** False where it is not there, or would grow beyond the quota; one that does not grow is within it. */
export async function updatePurpose(
  db: Database,
  accountId: number,
  purposeId: string,
  { name, body, bytes }: PurposeText,
  { purposeBytes }: PurposeQuotas,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    await lockUsage(tx, accountId);
    const { rowCount } = await tx.query(
      `
        with counted as (
          update account_usage u
             set purpose_bytes = u.purpose_bytes + $5 - p.bytes
            from purpose p
           where u.account_id = $1 and p.id = $2 and p.account_id = $1
             and ($5 <= p.bytes
                  or u.purpose_bytes + $5 - p.bytes <= ${limitOf('$1', 'purposeBytes', '$6')})
          returning u.account_id
        )
        update purpose p
           set name = $3, body = $4::text::json, bytes = $5
          from counted
         where p.id = $2 and p.account_id = counted.account_id`,
      [accountId, purposeId, name, body, bytes, purposeBytes],
    );
    return rowCount === 1;
  });
}

/** False when the account has no such purpose. Installed profiles keep their copy. */
export async function deletePurpose(
  db: Database,
  accountId: number,
  purposeId: string,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    await lockUsage(tx, accountId);
    const { rowCount } = await tx.query('delete from purpose where id = $2 and account_id = $1', [
      accountId,
      purposeId,
    ]);
    return rowCount === 1;
  });
}

/** PostgreSQL's text holds every character but NUL. */
const nameOf = ({ name }: Purpose) => (name ?? '').replaceAll('\0', '\uFFFD');
