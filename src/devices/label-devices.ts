import { maxLabels } from '../contract/label.ts';
import type { Sql } from '../db/sql.ts';

type Relabelled = {
  accountId: number;
  uuids: readonly string[];
  add: readonly string[];
  remove: readonly string[];
};

/** Adds labels to devices and takes labels off them. Gives those that are not there, or would have too many. */
export async function relabelDevices(
  tx: Sql,
  { accountId, uuids, add, remove }: Relabelled,
): Promise<{ missing: string[]; full: string[] }> {
  const { rows } = await tx.query<{ uuid: string; isFull: boolean }>(
    `
      with found as (
        select id, uuid,
               array(select l from unnest(labels) with ordinality as own (l, place)
                      where l <> all($4::text[]) order by place)
                 || array(select l from unnest($3::text[]) as added (l) where l <> all(labels))
               as labels
          from device
         where account_id = $1 and uuid = any($2::uuid[])
         order by id
           for no key update
      ), changed as (
        update device d
           set labels = f.labels
          from found f
         where d.id = f.id and cardinality(f.labels) <= ${maxLabels} and d.labels <> f.labels
      )
      select uuid, cardinality(labels) > ${maxLabels} as "isFull" from found`,
    [accountId, uuids, add, remove],
  );
  const found = new Set(rows.map(({ uuid }) => uuid));
  return {
    missing: uuids.filter((uuid) => !found.has(uuid)),
    full: rows.filter(({ isFull }) => isFull).map(({ uuid }) => uuid),
  };
}

/** Those of the account, and within reach of the labels (null: any), in the order of their numbers. */
export async function listReachable(
  tx: Sql,
  accountId: number,
  { uuids, labels }: { uuids: readonly string[]; labels: readonly string[] | null },
): Promise<{ deviceId: number; uuid: string }[]> {
  const { rows } = await tx.query<{ deviceId: number; uuid: string }>(
    `
      select id as "deviceId", uuid
        from device
       where account_id = $1 and uuid = any($2::uuid[]) and ($3::text[] is null or labels && $3)
       order by id`,
    [accountId, uuids, labels],
  );
  return rows;
}

/** Without those that have all of these labels already, or none of those that are taken off. */
export async function leaveOutLabelled(
  tx: Sql,
  of: { accountId: number; uuids: readonly string[]; action: string; labels: readonly string[] },
): Promise<string[]> {
  const { rows } = await tx.query<{ uuids: string[] | null }>(
    `
      select array_agg(named.uuid::text order by named.place) as uuids
        from unnest(string_to_array($2, ',')::uuid[]) with ordinality as named (uuid, place)
        left join device d on d.uuid = named.uuid and d.account_id = $1
       where d.id is null or ${of.action === 'label' ? 'not d.labels @> $3' : 'd.labels && $3'}`,
    [of.accountId, of.uuids.join(), of.labels],
  );
  return rows[0]?.uuids ?? [];
}
