import type { Sql } from '../db/sql.ts';
import { deleteInBatches } from '../db/delete-in-batches.ts';
import { forgetOldKeys, keptMs } from './queries.ts';

/** Forgets the keys whose 24 hours are over. `nowTs` in ms. */
export async function forgetKeys(sql: Sql, nowTs: number, signal?: AbortSignal): Promise<void> {
  await deleteInBatches((limit) => forgetOldKeys(sql, nowTs - keptMs, limit), { signal });
}
