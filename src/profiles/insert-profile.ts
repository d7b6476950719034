import { createHash } from 'node:crypto';
import type { Sql } from '../db/sql.ts';
import { limitOf } from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';

/** A profile's purposes as they are kept. */
export type ProfileText = { text: string; bytes: number };

/**
 * Installs a new profile on devices that wait for none; null beyond a quota. What it says is stored
 * once for all profiles of the account that say the same. The account's usage is locked (`lockUsage`).
 */
export async function insertProfile(
  tx: Sql,
  accountId: number,
  deviceIds: number[],
  { text, bytes }: ProfileText,
  quotas: Pick<QuotaSettings, 'profiles' | 'profileBytesTotal'>,
): Promise<string | null> {
  const { rows } = await tx.query<{ id: string }>(
    `
      with known as (
        select id from profile_content where account_id = $1 and hash = $4
      ), counted as (
        update account_usage u
           set profiles = u.profiles + 1, profile_bytes = u.profile_bytes + $5
         where u.account_id = $1
           and not exists (select from known)
           and u.profiles < ${limitOf('$1', 'profiles', '$6')}
           and u.profile_bytes + $5 <= ${limitOf('$1', 'profileBytesTotal', '$7')}
        returning u.account_id
      ), added as (
        insert into profile_content (account_id, hash, bytes, purposes)
        select account_id, $4, $5, $2::text::json from counted
        returning id
      ), installed as (
        insert into profile (account_id, content_id)
        select $1, id from (select id from known union all select id from added) as content
        returning id
      ), waiting as (
        insert into device_profile (device_id, profile_id)
        select device_id, id from installed, unnest($3::bigint[]) as device_id
      )
      select id from installed`,
    [accountId, text, deviceIds, hashOf(text), bytes, quotas.profiles, quotas.profileBytesTotal],
  );
  return rows[0]?.id ?? null;
}

const hashOf = (text: string) => createHash('sha256').update(text).digest();
