import type { Purpose } from '../contract/purpose.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { isUuid } from '../lib/uuid.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { tooLarge, unfit } from './check-install.ts';
import { listPurposeBytes, listPurposesById } from './queries.ts';

/**
 * In the order given. Throws `not-found` when one is not there. 256 of them have 64 MiB together, and one
 * may be named 256 times: `invalid-input` before any of it is read where that is too much for a profile.
 */
export async function getPurposes(
  db: Sql,
  accountId: number,
  purposeUuids: string[],
  limits: QuotaSettings,
): Promise<Purpose[]> {
  if (purposeUuids.length === 0) return [];
  const ids = purposeUuids.map((id) => id.toLowerCase());
  const possible = [...new Set(ids.filter(isUuid))];
  const lengths = inOrder(ids, await listPurposeBytes(db, accountId, possible));
  const bytes = lengths.reduce((sum, length) => sum + length, 0);
  if (bytes > limits.profileBytes) throw unfit([tooLarge(bytes, limits)]);
  return inOrder(ids, await listPurposesById(db, accountId, possible));
}

function inOrder<T>(ids: string[], stored: Map<string, T>): T[] {
  return ids.map((id) => {
    const purpose = stored.get(id);
    if (purpose === undefined) {
      throw new DomainError('not-found', 'A purpose is not there: nothing was installed.');
    }
    return purpose;
  });
}
