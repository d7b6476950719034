import type { Sql } from '../db/sql.ts';

/** Which devices of an account. Absent: any. `labels`: those that have one of them; null: any. */
export type ExportFilter = {
  uuids?: string[] | undefined;
  label?: string | undefined;
  labels?: readonly string[] | null;
};

export type ExportedDevice = { id: number; uuid: string };

/**
 * The account's devices that the filter lets through, in the order of their registration: all, or at most `limit`
 * behind the one numbered `after`.
 */
export async function listFilteredDevices(
  sql: Sql,
  accountId: number,
  { uuids, label, labels }: ExportFilter,
  { limit, after }: { limit: number; after: number } = { limit: 2_147_483_647, after: 0 },
): Promise<ExportedDevice[]> {
  const { rows } = await sql.query<ExportedDevice>({
    name: 'list-filtered-devices',
    text: `
      select id, uuid
        from device
       where account_id = $1 and id > $2
         and ($3::uuid[] is null or uuid = any($3))
         and ($4::text is null or labels @> array[$4])
         and ($6::text[] is null or labels && $6)
       order by id
       limit $5`,
    values: [accountId, after, uuids, label, limit, labels],
  });
  return rows;
}
