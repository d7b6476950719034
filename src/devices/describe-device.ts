import { coalesce } from '../lib/coalesce.ts';
import type { Sql } from '../db/sql.ts';
import { listConfigurations } from './configuration-queries.ts';
import type { ConfigurationRow } from './configuration-queries.ts';

/** Gives a `DescribedDevice` as JSON text. */
export type DescribeDevice = (
  accountId: number,
  uuid: string,
  timestamp: number,
) => Promise<string | null>;

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
  return async (accountId, uuid, timestamp) => {
    const row = await configurations.find(uuid);
    return row?.account_id === accountId ? describe(row, timestamp) : null;
  };
}

/** What is stored is put together as it is: `{"device": …, "module": …}` goes on with the rest. */
function describe(row: ConfigurationRow, timestamp: number): string {
  const { configuration } = row;
  const current = profileOf(row.current_id, row.current_purposes, row.current_at);
  const pending = profileOf(row.pending_id, row.pending_purposes, row.pending_at);
  const state = JSON.stringify({ puId: row.pu_id, stId: row.st_id, ts: row.state_at });
  return (
    `${configuration.slice(0, configuration.lastIndexOf('}'))},"currentProfile":${current},` +
    `"pendingProfile":${pending},"state":${state},"timestamp":${timestamp}}`
  );
}

function profileOf(pId: string | null, purposes: string | null, ts: number | null): string {
  if (pId === null || purposes === null || ts === null) return '{}';
  return `{"pId":"${pId}","purposes":${purposes},"ts":${ts}}`;
}
