import type { Sql } from '../db/sql.ts';

/** Refused logins with a uuid, added up by reason and address. `address`: empty where it is not known. */
export type RefusedLogins = {
  uuid: string;
  reason: string;
  address: string;
  count: number;
  firstTs: number;
  lastTs: number;
  /** The device was not let in since, as far as the writer knows. */
  isOpen: boolean;
};

/** Kept of each uuid, the newest. */
const keptRefusedLogins = 16;
/** How long they are kept, and whose device a removed one was. */
const refusedLoginDays = 30;

/**
 * Adds them to what is kept of uuids that are a device's, or were one's; of others nothing is kept. A uuid
 * that nothing is known of belongs to nobody, and `unknown` of a device says nothing.
 */
export async function addRefusedLogins(db: Sql, refused: RefusedLogins[]): Promise<void> {
  const { rows } = await db.query<{ uuid: string }>({
    name: 'devices-add-refused-logins',
    text: `
      with given as (
        select *
          from unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[],
                      $7::boolean[])
            as g (uuid, reason, address, count, first_ts, last_ts, is_open)
      ), owned as (
        select g.*, d.account_id, d.id as device_id,
               case when a.disabled_at is null then g.reason else 'account-disabled' end as why
          from given g
          join device d on d.uuid = g.uuid
          join account a on a.id = d.account_id
        union all
        select g.*, r.account_id, null, 'device-removed'
          from given g
          join removed_uuid r on r.uuid = g.uuid
      )
      insert into refused_login as kept
        (uuid, reason, address, account_id, device_id, count, first_at, last_at, is_open)
      select uuid, why, address, account_id, device_id, sum(count),
             ms_to_timestamp(min(first_ts)), ms_to_timestamp(max(last_ts)), bool_or(is_open)
        from owned
       where why <> 'unknown'
       group by uuid, why, address, account_id, device_id
       order by uuid, why, address
      on conflict (uuid, reason, address) do update
         set count = kept.count + excluded.count,
             first_at = least(kept.first_at, excluded.first_at),
             last_at = greatest(kept.last_at, excluded.last_at),
             is_open = excluded.is_open
      returning uuid`,
    values: [
      refused.map(({ uuid }) => uuid),
      refused.map(({ reason }) => reason),
      refused.map(({ address }) => address),
      refused.map(({ count }) => count),
      refused.map(({ firstTs }) => firstTs),
      refused.map(({ lastTs }) => lastTs),
      refused.map(({ isOpen }) => isOpen),
    ],
  });
  if (rows.length > 0) await trim(db, [...new Set(rows.map(({ uuid }) => uuid))]);
}

async function trim(db: Sql, uuids: string[]): Promise<void> {
  await db.query({
    name: 'devices-trim-refused-logins',
    text: `
      delete from refused_login
       where ctid = any(array(
         select place
           from unnest($1::uuid[]) as of_device (uuid)
          cross join lateral (
            select ctid as place
              from refused_login r
             where r.uuid = of_device.uuid
             order by last_at desc, reason, address
            offset $2) old))`,
    values: [uuids, keptRefusedLogins],
  });
}

/** These devices were let in at these times: what was refused before is over. */
export async function closeRefusedLogins(db: Sql, letIn: [number, number][]): Promise<void> {
  await db.query({
    name: 'devices-close-refused-logins',
    text: `
      update refused_login r
         set is_open = false
        from unnest($1::bigint[], $2::bigint[]) as l (device_id, ts)
       where r.device_id = l.device_id and r.is_open and r.last_at <= ms_to_timestamp(l.ts)`,
    values: [letIn.map(([deviceId]) => deviceId), letIn.map(([, ts]) => ts)],
  });
}

export type RefusedLoginRow = {
  reason: string;
  address: string;
  count: number;
  first_at: number;
  last_at: number;
};

/** Newest first. Null where the account neither has nor had such a device within 30 days. */
export async function findRefusedLogins(
  db: Sql,
  accountId: number,
  uuid: string,
): Promise<RefusedLoginRow[] | null> {
  const { rows } = await db.query<RefusedLoginRow | { reason: null }>(
    `
      select r.reason, r.address, r.count, r.first_at, r.last_at
        from (select from device where uuid = $2 and account_id = $1
              union all
              select from removed_uuid where uuid = $2 and account_id = $1) as known
        left join refused_login r on r.uuid = $2 and r.account_id = $1
       order by r.last_at desc, r.reason, r.address`,
    [accountId, uuid],
  );
  if (rows.length === 0) return null;
  return rows.filter((row): row is RefusedLoginRow => row.reason !== null);
}

type RemovedLoginRow = RefusedLoginRow & { uuid: string; name: string | null; removed_at: number };

/** Of devices that the account removed within 30 days, newest first. */
export async function findRemovedLogins(
  db: Sql,
  accountId: number,
  limit: number,
): Promise<RemovedLoginRow[]> {
  const { rows } = await db.query<RemovedLoginRow>(
    `
      select r.uuid, u.name, u.removed_at, r.reason, r.address, r.count, r.first_at, r.last_at
        from refused_login r
        join removed_uuid u on u.uuid = r.uuid and u.account_id = r.account_id
       where r.account_id = $1 and r.device_id is null
       order by r.last_at desc, r.uuid, r.reason, r.address
       limit $2`,
    [accountId, limit],
  );
  return rows;
}

/** A chore of the upkeep: what is older than is kept goes. */
export async function forgetRefusedLogins(db: Sql, nowTs: number): Promise<void> {
  const before = nowTs - refusedLoginDays * 86_400_000;
  await db.query('delete from refused_login where last_at < ms_to_timestamp($1)', [before]);
  await db.query('delete from removed_uuid where removed_at < ms_to_timestamp($1)', [before]);
}
