import type { Sql } from '../db/sql.ts';
import { findUsage } from './queries.ts';
import type { UsageList } from './schema.ts';
import { quotaNames, type QuotaSettings } from './settings.ts';

/** Each quota with its limit for the account and what of it is in use; null when the account is gone. */
export async function listUsage(
  sql: Sql,
  quotas: QuotaSettings,
  accountId: number,
): Promise<UsageList['usage'] | null> {
  const usage = await findUsage(sql, accountId);
  if (!usage) return null;
  return quotaNames.map((quota) => ({
    quota,
    limit: usage.overrides[quota] ?? quotas[quota],
    used: usage.used[quota] ?? null,
  }));
}
