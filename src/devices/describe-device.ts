import type { Purpose } from '../core/purpose.ts';
import type { Sql } from '../db/database.ts';
import { findConfiguration } from './configuration-queries.ts';
import type { DescribedDevice } from './schema.ts';

/** Get Configuration, specification section 2.4; null when the account has no such device. */
export async function describeDevice(
  db: Sql,
  accountId: number,
  uuid: string,
): Promise<Omit<DescribedDevice, 'timestamp'> | null> {
  const row = await findConfiguration(db, accountId, uuid);
  if (!row) return null;
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
