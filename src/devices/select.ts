import type { Sql } from '../db/sql.ts';
import { refuseUnknown } from '../http/errors.ts';
import { invalid } from '../http/route.ts';

/** Selects devices of an account. Absent members: any. `labels`: those with at least one of them; null: any. */
type DeviceSelection = {
  uuids?: string[] | undefined;
  label?: string | undefined;
  labels?: readonly string[] | null;
};

type Page = { limit: number; after: number };
const wholeList: Page = { limit: 2_147_483_647, after: 0 };

export type SelectedDevice = { id: number; uuid: string };

/**
 * The devices that a request asks for, in the order of registration: all, or a page. Throws `not-found` if a named
 * device does not exist, and `invalid-input` as `refuseLabelList` does.
 */
export async function listAskedDevices(
  sql: Sql,
  accountId: number,
  filter: DeviceSelection,
  { labelPath, page = wholeList }: { labelPath?: string | undefined; page?: Page } = {},
): Promise<SelectedDevice[]> {
  await refuseLabelList(sql, accountId, filter, labelPath);
  if (!filter.uuids) return listFilteredDevices(sql, accountId, filter, page);
  const { limit, after } = page;
  const found = await listFilteredDevices(sql, accountId, filter);
  // With a label, some of the named devices may rightly be missing. One may be removed before its page is read.
  if (filter.label === undefined && after === 0) refuseUnknown(filter.uuids, found);
  return found.filter(({ id }) => id > after).slice(0, limit);
}

/**
 * The account's devices that the filter selects, in the order of registration: all, or at most `limit` after the
 * device with the number `after`.
 */
export async function listFilteredDevices(
  sql: Sql,
  accountId: number,
  { uuids, label, labels }: DeviceSelection,
  { limit, after }: Page = wholeList,
): Promise<SelectedDevice[]> {
  const { rows } = await sql.query<SelectedDevice>({
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
 * Throws `invalid-input` for a `label` with a comma if no device of the account (and of the key's `labels`) has
 * it: the caller probably meant several labels, and a filter names one. Any other label may be given to a device
 * later. `path`: where the request has it.
 */
export async function refuseLabelList(
  sql: Sql,
  accountId: number,
  { label, labels = null }: Pick<DeviceSelection, 'label' | 'labels'>,
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
