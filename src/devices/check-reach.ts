import type { Sql } from '../db/sql.ts';
import { isUuid } from '../lib/uuid.ts';
import { noSuchDevice } from './no-such-device.ts';

/** Throws `not-found` unless the device is the account's and has one of these labels. */
export async function checkReach(
  sql: Sql,
  accountId: number,
  uuid: string,
  labels: readonly string[],
): Promise<void> {
  if (!isUuid(uuid)) throw noSuchDevice();
  const { rowCount } = await sql.query({
    name: 'device-has-label',
    text: 'select from device where uuid = $1 and account_id = $2 and labels && $3::text[]',
    values: [uuid, accountId, labels],
  });
  if (rowCount === 0) throw noSuchDevice();
}
