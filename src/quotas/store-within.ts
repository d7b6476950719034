import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { quotaExceeded } from './exceeded.ts';
import { accountGone, findUsage, throwGone } from './quotas.ts';
import type { QuotaName, QuotaSettings } from './settings.ts';

export type Within = {
  accountId: number;
  quotas: QuotaSettings;
  /** What it adds to which quotas. */
  adding: Partial<Record<QuotaName, number>>;
};

// Room that others took, and gave back, between a refusal and the look at why.
const maxAttempts = 5;

/**
 * Runs a statement that stores something only within the account's quotas, and gives null where it did
 * not. Then it says why not: `quota-exceeded`, or `unauthenticated` where the account is gone.
 */
export async function storeWithin<T>(
  sql: Sql,
  { accountId, quotas, adding }: Within,
  store: () => Promise<T | null>,
): Promise<T> {
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const stored = await store().catch(throwGone);
    if (stored !== null) return stored;
    const refusal = await findRefusal(sql, { accountId, quotas, adding });
    if (refusal) throw refusal;
  }
  throw new DomainError(
    'unavailable',
    'Other requests use up and free the last of a quota at this moment: try again later.',
  );
}

/** Throws what speaks against it, for whoever has the account's usage locked: before anything is stored. */
export async function refuseBeyond(sql: Sql, within: Within): Promise<void> {
  const refusal = await findRefusal(sql, within);
  if (refusal) throw refusal;
}

/** Why something was not stored, for whoever has the account's usage locked. */
export async function explainRefusal(sql: Sql, within: Within): Promise<DomainError> {
  const refusal = await findRefusal(sql, within);
  return refusal ?? new DomainError('unavailable', 'Nothing was stored, and no quota says why.');
}

/** Null where it would be within all quotas by now. */
async function findRefusal(
  sql: Sql,
  { accountId, quotas, adding }: Within,
): Promise<DomainError | null> {
  const usage = await findUsage(sql, accountId);
  if (!usage) return accountGone();
  for (const [name, more] of Object.entries(adding)) {
    const quota = name as QuotaName;
    const limit = usage.overrides[quota] ?? quotas[quota];
    const used = usage.used[quota] ?? 0;
    if (used + more > limit) return quotaExceeded({ quota, limit, used });
  }
  return null;
}
