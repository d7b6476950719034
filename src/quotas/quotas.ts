import { stateOf, states } from '../db/errors.ts';
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

/** Messages of one kind that the account has sent today. */
const sent = (kind: 'account' | 'sms' | 'webhook') => `
  coalesce((select used from message_count
             where kind = '${kind}' and account_id = a.id and key = '' and day >= ${today}), 0)`;

/** Null when the account is gone. `connections`: devices that are connected, at the connector that has most. */
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
               'profileBytesTotal', coalesce(u.profile_bytes, 0),
               'connections',
                 (select coalesce(max(c.connected), 0)
                    from (select count(*) as connected
                            from device d join presence p on p.device_id = d.id
                           where d.account_id = a.id and p.connected
                           group by p.connector_id) as c),
               'contacts', (select count(*) from contact where account_id = a.id),
               'pushTokens', (select count(*) from push_token where account_id = a.id),
               'keys', (select count(*) from api_key where account_id = a.id),
               'jobs', (select count(*) from job where account_id = a.id and state = 'running'),
               'idempotencyKeys',
                 (select count(*) from idempotency_key where account_id = a.id),
               'messagesPerDay', ${sent('account')},
               'webhooksPerDay', ${sent('webhook')},
               'smsPerDay', ${sent('sms')}) as used,
             coalesce(
               (select json_object_agg(quota, value) from account_quota where account_id = a.id),
               '{}') as overrides
        from account a
        left join account_usage u on u.account_id = a.id
       where a.id = $1 and a.removed_at is null`,
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
        select id from account where id = $1 and removed_at is null
        on conflict (account_id) do update set devices = account_usage.devices
         where not account_usage.is_closed`,
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
): Promise<{ accountId: number; email: string; its: Usage['overrides'] }[]> {
  const { rows } = await sql.query<{ accountId: number; email: string; its: Usage['overrides'] }>(
    `
      select a.id as "accountId", a.email, json_object_agg(q.quota, q.value) as its
        from account_quota q
        join account a on a.id = q.account_id
       where a.removed_at is null
       group by a.id`,
  );
  return rows;
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
