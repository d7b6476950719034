import { stateOf, states } from '../db/error-kind.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { QuotaName } from './settings.ts';

/** A quota's limit for one account, as SQL: its own, or else the configuration's (`otherwise`). */
export function limitOf(account: string, quota: QuotaName, otherwise: string): string {
  return `coalesce(
    (select value from account_quota where account_id = ${account} and quota = '${quota}'),
    ${otherwise}::bigint)`;
}

/** Today, as registrations are counted. */
export const today = `(now() at time zone 'UTC')::date`;

/** What an account has stored, and which quotas are its own. */
export type Usage = {
  used: Partial<Record<QuotaName, number>>;
  overrides: Partial<Record<QuotaName, number>>;
};

/** Null when the account is gone. */
export async function findUsage(sql: Sql, accountId: number): Promise<Usage | null> {
  const { rows } = await sql.query<Usage>(
    `
      select json_build_object(
               'devices', coalesce(u.devices, 0),
               'devicesPerDay',
                 case when u.registrations_day = ${today} then u.registrations else 0 end,
               'purposes', coalesce(u.purposes, 0),
               'purposeBytes', coalesce(u.purpose_bytes, 0),
               'profiles', coalesce(u.profiles, 0),
               'profileBytesTotal', coalesce(u.profile_bytes, 0)) as used,
             coalesce(
               (select json_object_agg(quota, value) from account_quota where account_id = a.id),
               '{}') as overrides
        from account a
        left join account_usage u on u.account_id = a.id
       where a.id = $1`,
    [accountId],
  );
  return rows[0] ?? null;
}

/**
 * Keeps everybody else from counting for this account until the transaction ends; `unauthenticated` when
 * it is gone. Before anything else of the account is locked, and before `ingestLock`: nobody waits in a
 * circle then, and no other account for what this one does.
 */
export async function lockUsage(tx: Sql, accountId: number): Promise<void> {
  const { rowCount } = await tx
    .query(
      `
        insert into account_usage (account_id)
        select id from account where id = $1
        on conflict (account_id) do update set devices = account_usage.devices`,
      [accountId],
    )
    .catch(throwGone);
  if (rowCount === 0) throw accountGone();
}

export function accountGone(): DomainError {
  return new DomainError('unauthenticated', 'The account is gone.');
}

/** foreign_key_violation: the account was removed while somebody waited to count for it. */
export function throwGone(error: unknown): never {
  if (stateOf(error) === states.foreignKeyViolation) throw accountGone();
  throw error;
}

/** All accounts that have quotas of their own, with these. */
export async function listOverrides(
  sql: Sql,
): Promise<Map<number, Partial<Record<QuotaName, number>>>> {
  const { rows } = await sql.query<{ account_id: number; quotas: Usage['overrides'] }>(
    'select account_id, json_object_agg(quota, value) as quotas from account_quota group by 1',
  );
  return new Map(rows.map(({ account_id, quotas }) => [account_id, quotas]));
}

/** The account has a limit of its own from now on. */
export async function saveOverride(
  sql: Sql,
  accountId: number,
  quota: QuotaName,
  value: number,
): Promise<void> {
  await sql.query(
    `
      insert into account_quota (account_id, quota, value) values ($1, $2, $3)
      on conflict (account_id, quota) do update set value = excluded.value`,
    [accountId, quota, value],
  );
}

/** The configuration's limit counts for the account again. */
export async function removeOverride(sql: Sql, accountId: number, quota: QuotaName): Promise<void> {
  await sql.query('delete from account_quota where account_id = $1 and quota = $2', [
    accountId,
    quota,
  ]);
}
