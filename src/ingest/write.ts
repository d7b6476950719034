import type { Configuration } from '../contract/configuration.ts';
import { awaitingAnswer, neededStates } from '../contract/profile.ts';
import type { Purpose } from '../contract/purpose.ts';
import { plainArray, plainArrays } from '../db/array.ts';
import { ingestLock } from '../db/locks.ts';
import type { Sql } from '../db/sql.ts';
import { textList } from '../db/text-list.ts';
import type { StoredRuntime } from '../engine/read-runtime.ts';
import type { StoredLog } from '../engine/replay.ts';
import type { DeviceContext } from './rules/device-context.ts';
import type { StoredClocks } from './save-states.ts';

export type DeviceRow = {
  device_id: number;
  uuid: string;
  account_id: number;
  configuration: Configuration;
  version: number;
  pu_id: number;
  st_id: number;
  state_at: number;
  reported_at: number | null;
  reported_pu_id: number | null;
  reported_st_id: number | null;
  answers_profiles: boolean;
  due_at: number | null;
  runtime: StoredRuntime | null;
  /** What was added to it, in order; of another base: nothing that counts. */
  evidence_log: StoredLog[] | null;
  current_profile: string | null;
  current_content: number | null;
  engine: 'service' | 'device' | null;
  pending_profile: string | null;
  pending_content: number | null;
  pending_since: number | null;
  clocks: StoredClocks | null;
};

/** How much of a device's row, and of what its profiles say, there is to read. */
export type DeviceSize = {
  device_id: number;
  account_id: number;
  bytes: number;
  contents: { id: number; bytes: number }[];
};

/** In the order that is given; a device that was removed is not among them. */
export async function listSizes(db: Sql, deviceIds: number[]): Promise<DeviceSize[]> {
  const { rows } = await db.query<DeviceSize>({
    name: 'ingest-sizes',
    text: `
      select s.device_id, d.account_id,
             octet_length(d.configuration::text)
               + coalesce(octet_length(s.runtime::text), 0)
               + (select coalesce(sum(octet_length(measurements)), 0)
                    from evidence_log l where l.device_id = s.device_id)::integer as bytes,
             array(
               select json_build_object('id', c.id, 'bytes', c.bytes)
                 from device_profile dp
                 join profile p on p.id = dp.profile_id
                 join profile_content c on c.id = p.content_id
                where dp.device_id = s.device_id
                  and dp.state in ${textList(neededStates)}) as contents
        from unnest($1::bigint[]) with ordinality as wanted (device_id, place)
        join device_state s on s.device_id = wanted.device_id
        join device d on d.id = s.device_id
        join account a on a.id = d.account_id and a.removed_at is null
       order by wanted.place`,
    values: [deviceIds],
  });
  return rows;
}

/**
 * Makes those that have a profile this transaction's own: nobody else has one of their messages under
 * way, and what was computed from what was read of them before is void.
 */
export async function claimStates(tx: Sql, deviceIds: number[]): Promise<void> {
  await tx.query({
    name: 'ingest-claim',
    // In order, so that two that claim the same ones wait for each other in one direction.
    text: `
      update device_state s
         set version = version + 1
        from (
          select device_id
            from device_state
           where device_id = any($1::bigint[])
             and exists (
               select from device_profile p
                where p.device_id = device_state.device_id
                  and p.state in ${textList(neededStates)})
           order by device_id
             for no key update) as claimed
       where s.device_id = claimed.device_id`,
    values: [deviceIds],
  });
}

/** All that evaluation depends on; a device that was removed is not among the rows. */
export async function listDeviceStates(db: Sql, deviceIds: number[]): Promise<DeviceRow[]> {
  const { rows } = await db.query<DeviceRow>({
    name: 'ingest-devices',
    text: `
      select s.device_id, d.uuid, d.account_id, d.configuration, s.version,
             s.pu_id, s.st_id, s.state_at, s.reported_at, s.reported_pu_id, s.reported_st_id,
             s.answers_profiles, due.due_at, s.runtime, (select json_agg(l order by l.version)
                                                from evidence_log l
                                               where l.device_id = s.device_id) as evidence_log,
             c.profile_id as current_profile, cp.content_id as current_content, c.engine,
             p.profile_id as pending_profile, pp.content_id as pending_content,
             pp.created_at as pending_since,
             (select json_object_agg(k.s_id, k.state)
                from sense_clock k where k.device_id = s.device_id) as clocks
        from unnest($1::bigint[]) as wanted (device_id)
        join device_state s on s.device_id = wanted.device_id
        join device d on d.id = s.device_id
        join account a on a.id = d.account_id and a.removed_at is null
        left join device_due due on due.device_id = s.device_id
        left join device_profile c on c.device_id = d.id and c.state = 'current'
        left join profile cp on cp.id = c.profile_id
        left join device_profile p on p.device_id = d.id and p.state in ${textList(awaitingAnswer)}
        left join profile pp on pp.id = p.profile_id`,
    values: [deviceIds],
  });
  return rows;
}

/** What profiles say. */
export type ContentRow = { id: number; account_id: number; bytes: number; purposes: Purpose[] };

export async function listContents(db: Sql, contentIds: number[]): Promise<ContentRow[]> {
  const { rows } = await db.query<ContentRow>({
    name: 'ingest-contents',
    text: `
      select id, account_id, bytes, purposes
        from profile_content
       where id = any($1::bigint[])`,
    values: [contentIds],
  });
  return rows;
}

/** Holds back the removal of devices until the transaction ends; see `ingestLock`. */
export async function lockIngest(tx: Sql): Promise<void> {
  await tx.query(`select pg_advisory_xact_lock_shared(${ingestLock})`);
}

/** Those of these accounts that were removed, as it stands behind `lockIngest`: mostly none. */
export async function listRemovedAccounts(tx: Sql, accountIds: number[]): Promise<number[]> {
  const { rows } = await tx.query<{ id: number }>({
    name: 'ingest-removed-accounts',
    text: 'select id from account where removed_at is not null and id = any($1::bigint[])',
    values: [plainArray(accountIds)],
  });
  return rows.map(({ id }) => id);
}

/** How many of these devices still stand at the version that the transaction was computed from. */
export async function countUnchanged(tx: Sql, contexts: DeviceContext[]): Promise<number> {
  const { rows } = await tx.query<{ count: number }>({
    name: 'ingest-unchanged',
    text: `
      select count(*)
        from unnest($1::bigint[], $2::bigint[]) as read (device_id, version)
        join device_state s on s.device_id = read.device_id and s.version = read.version`,
    values: plainArrays(
      contexts.map((c) => c.device.deviceId),
      contexts.map((c) => c.version),
    ),
  });
  return rows[0]?.count ?? 0;
}

/** The same, and nobody changes or claims them before the transaction ends. */
export async function holdUnchanged(tx: Sql, contexts: DeviceContext[]): Promise<number> {
  const { rows } = await tx.query<{ count: number }>({
    name: 'ingest-hold',
    text: `
      select count(*)
        from (
          select
            from unnest($1::bigint[], $2::bigint[]) as read (device_id, version)
            join device_state s on s.device_id = read.device_id and s.version = read.version
             for share of s) as held`,
    values: plainArrays(
      contexts.map((c) => c.device.deviceId),
      contexts.map((c) => c.version),
    ),
  });
  return rows[0]?.count ?? 0;
}
