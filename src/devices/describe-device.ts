import type { Purpose } from '../core/purpose.ts';
import { coalesce } from '../coalesce.ts';
import type { Sql } from '../db/sql.ts';
import { listConfigurations } from './configuration-queries.ts';
import type { ConfigurationRow } from './configuration-queries.ts';
import type { DescribedDevice } from './schema.ts';

export type DescribeDevice = (
  accountId: number,
  uuid: string,
) => Promise<Omit<DescribedDevice, 'timestamp'> | null>;

/**
 * Get Configuration, specification section 2.4; null when the account has no such device. Requests
 * that come at once share a query, which is always made after they came.
 */
export function createDescribeDevice(db: Sql): DescribeDevice {
  const configurations = coalesce({
    load: (uuids: string[]) => listConfigurations(db, uuids),
    maxKeys: 100,
    parallel: 2,
  });
  return async (accountId, uuid) => {
    const row = await configurations.find(uuid);
    return row?.account_id === accountId ? describe(row) : null;
  };
}

function describe(row: ConfigurationRow): Omit<DescribedDevice, 'timestamp'> {
  const { device, module } = row.configuration;
  return {
    device,
    module,
    currentProfile: profileOf(row.current_id, row.current_purposes, row.current_at),
    pendingProfile: profileOf(row.pending_id, row.pending_purposes, row.pending_at),
    state: { puId: row.pu_id, stId: row.st_id, ts: row.state_at },
  };
}

function profileOf(
  pId: string | null,
  purposes: Purpose[] | null,
  ts: number | null,
): DescribedDevice['currentProfile'] {
  return pId === null || purposes === null || ts === null ? {} : { pId, purposes, ts };
}
