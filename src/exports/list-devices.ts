import type { Sql } from '../db/sql.ts';
import { refuseUnknown } from '../http/errors.ts';
import { invalid } from '../http/route.ts';

/** Which devices of an account. Absent: any. `labels`: those that have one of them; null: any. */
type ExportFilter = {
  uuids?: string[] | undefined;
  label?: string | undefined;
  labels?: readonly string[] | null;
};

type Page = { limit: number; after: number };
const wholeList: Page = { limit: 2_147_483_647, after: 0 };

export type ExportedDevice = { id: number; uuid: string };

/**
 * The devices that a request asks for, in the order of their registration: all, or a page. Throws `not-found` for a
 * device that is named and not there, and `invalid-input` as `refuseLabelList` does.
 */
export async function listAskedDevices(
  sql: Sql,
  accountId: number,
  filter: ExportFilter,
  { labelPath, page = wholeList }: { labelPath?: string | undefined; page?: Page } = {},
): Promise<ExportedDevice[]> {
  await refuseLabelList(sql, accountId, filter, labelPath);
  if (!filter.uuids) return listFilteredDevices(sql, accountId, filter, page);
  const { limit, after } = page;
  const found = await listFilteredDevices(sql, accountId, filter);
  // A label that is named too may leave some of them out, and one may be removed before the last page.
  if (filter.label === undefined && after === 0) refuseUnknown(filter.uuids, found);
  return found.filter(({ id }) => id > after).slice(0, limit);
}

/**
 * The account's devices that the filter lets through, in the order of their registration: all, or at most `limit`
 * behind the one numbered `after`.
 */
export async function listFilteredDevices(
  sql: Sql,
  accountId: number,
  { uuids, label, labels }: ExportFilter,
  { limit, after }: Page = wholeList,
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

/**
 * Throws `invalid-input` for a `label` with a comma that no device has which the account, or a key confined to `labels`,
 * reaches: several were meant, and a filter names one. Any other label may be given to a device later. `path`: where the request has
 * it.
 */
export async function refuseLabelList(
  sql: Sql,
  accountId: number,
  { label, labels = null }: Pick<ExportFilter, 'label' | 'labels'>,
  path = 'label',
): Promise<void> {
  if (!label?.includes(',')) return;
  const { rows } = await sql.query({
    name: 'has-device-with-label',
    text: `
      select from device
       where account_id = $1 and labels @> array[$2] and ($3::text[] is null or labels && $3)
       limit 1`,
    values: [accountId, label, labels],
  });
  if (rows.length > 0) return;
  const message = 'no device has this label: expected one label (a comma is part of it)';
  throw invalid([{ path, message }]);
}
