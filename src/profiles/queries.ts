import { createHash } from 'node:crypto';
import type { Sense } from '../contract/configuration.ts';
import type { Purpose } from '../contract/purpose.ts';
import type { Sql } from '../db/sql.ts';
import { limitOf } from '../quotas/queries.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import type { ProfileState } from '../contract/profile-state.ts';
import { transition } from './transition-sql.ts';

const superseded = transition('superseded');

/** How long the account's purposes of these identifiers are, as JSON; what it does not have is left out. */
export async function listPurposeBytes(
  db: Sql,
  accountId: number,
  purposeIds: string[],
): Promise<Map<string, number>> {
  const { rows } = await db.query<{ id: string; bytes: number }>(
    'select id, bytes from purpose where id = any($2::uuid[]) and account_id = $1',
    [accountId, purposeIds],
  );
  return new Map(rows.map(({ id, bytes }) => [id, bytes]));
}

/** The account's purposes of these identifiers; what it does not have is left out. */
export async function listPurposesById(
  db: Sql,
  accountId: number,
  purposeIds: string[],
): Promise<Map<string, Purpose>> {
  const { rows } = await db.query<{ id: string; body: Purpose }>(
    'select id, body from purpose where id = any($2::uuid[]) and account_id = $1',
    [accountId, purposeIds],
  );
  return new Map(rows.map(({ id, body }) => [id, body]));
}

export type ProfileTarget = { deviceId: number; uuid: string };

/**
 * Takes the account's devices of these uuids for a new profile: until the transaction ends nobody
 * else changes where they stand, and what was computed from how they stood before is void.
 */
export async function claimTargets(
  tx: Sql,
  accountId: number,
  uuids: string[],
): Promise<ProfileTarget[]> {
  // In one order, so that two installations do not wait for each other.
  const { rows } = await tx.query<{ device_id: number; uuid: string }>(
    `
      with target as (
        select s.device_id, d.uuid
          from device d
          join device_state s on s.device_id = d.id
         where d.uuid = any($2::uuid[]) and d.account_id = $1
         order by s.device_id
           for update of s
      )
      update device_state s
         set version = version + 1
        from target
       where s.device_id = target.device_id
      returning s.device_id, target.uuid`,
    [accountId, uuids],
  );
  return rows.map((row) => ({ deviceId: row.device_id, uuid: row.uuid }));
}

/** From now on these devices wait for no profile. */
export async function supersedeProfiles(tx: Sql, deviceIds: number[]): Promise<void> {
  await tx.query(
    `
      update device_profile
         set state = ${superseded.to}, changed_at = now()
       where device_id = any($1::bigint[]) and state in ${superseded.from}`,
    [deviceIds],
  );
}

/** Has devices be evaluated in so many ms, if not before. Their states are claimed (`claimTargets`). */
export async function fallDue(
  tx: Sql,
  accountId: number,
  deviceIds: number[],
  inMs: number,
): Promise<void> {
  await tx.query(
    `insert into device_due as due (device_id, account_id, due_at)
     select device_id, $1, service_now() + $3 * interval '1 millisecond'
       from unnest($2::bigint[]) as device_id
     on conflict (device_id) do update
        set due_at = least(due.due_at, excluded.due_at), retry_at = null, failures = 0`,
    [accountId, deviceIds, inMs],
  );
}

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

/** More distinct senses than any real fleet has. */
const maxSenses = 10_000;

/** The senses of these names that the devices have, those that are alike once. */
export async function listDeviceSenses(
  db: Sql,
  deviceIds: number[],
  sIds: string[],
): Promise<Sense[]> {
  const { rows } = await db.query<{ sId: string; min: number | null; max: number | null }>(
    `
      select sense->>'sId' as "sId",
             (sense->>'min')::double precision as min, (sense->>'max')::double precision as max
        from device
       cross join json_array_elements(configuration->'module') as module
       cross join json_array_elements(module->'senses') as sense
       where id = any($1::bigint[]) and sense->>'sId' = any($2::text[])
       group by 1, 2, 3
       limit $3`,
    [deviceIds, sIds, maxSenses],
  );
  return rows.map(({ sId, min, max }) => ({
    sId,
    ...(min !== null && { min }),
    ...(max !== null && { max }),
  }));
}

export type RollOutRow = {
  uuid: string;
  state: ProfileState;
  answer_text: string | null;
  changed_at: number;
};

/** How far a profile is on each of its devices; null when the account has no such profile. */
export async function findRollOut(
  db: Sql,
  accountId: number,
  profileId: string,
): Promise<RollOutRow[] | null> {
  const { rows } = await db.query<RollOutRow | { [K in keyof RollOutRow]: null }>(
    `
      select d.uuid, dp.state, dp.answer_text, dp.changed_at
        from profile p
        left join device_profile dp on dp.profile_id = p.id
        left join device d on d.id = dp.device_id
       where p.id = $2 and p.account_id = $1
       order by d.id`,
    [accountId, profileId],
  );
  if (rows.length === 0) return null;
  return rows.filter((row): row is RollOutRow => row.uuid !== null);
}
