import type { Sql } from '../db/sql.ts';
import { transition } from './transition-sql.ts';

const superseded = transition('superseded');

export type ProfileTarget = { deviceId: number; uuid: string };

/**
 * Takes the account's devices of these uuids for a new profile: until the transaction ends nobody
 * else changes where they stand, and what was computed from how they stood before is void. `labels`: only those
 * that have one of these; null: all.
 */
export async function claimTargets(
  tx: Sql,
  accountId: number,
  uuids: string[],
  labels: readonly string[] | null,
): Promise<ProfileTarget[]> {
  // In one order, so that two installations do not wait for each other.
  const { rows } = await tx.query<{ device_id: number; uuid: string }>(
    `
      with target as (
        select s.device_id, d.uuid
          from device d
          join device_state s on s.device_id = d.id
         where d.uuid = any($2::uuid[]) and d.account_id = $1
           and ($3::text[] is null or d.labels && $3)
         order by s.device_id
           for update of s
      )
      update device_state s
         set version = version + 1
        from target
       where s.device_id = target.device_id
      returning s.device_id, target.uuid`,
    [accountId, uuids, labels],
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
