import type { Sql } from '../db/sql.ts';
import { findActivity, type CountRetention } from './activity-queries.ts';
import { levelOf } from './near.ts';
import { findUsage, type Usage } from './quotas.ts';
import type { UsageList } from './schema.ts';
import { quotaNames, type QuotaName, type QuotaSettings } from './settings.ts';

export type UsageSources = {
  quotas: QuotaSettings;
  retention: CountRetention;
  /** What others count. */
  counters?: Partial<Record<QuotaName, (accountId: number) => Promise<number>>>;
};

/** Each quota with its limit for the account and what of it is in use; null when the account is gone. */
export async function listUsage(
  sql: Sql,
  { quotas, retention, counters = {} }: UsageSources,
  accountId: number,
): Promise<UsageList['usage'] | null> {
  const usage = await findUsage(sql, accountId);
  if (!usage) return null;
  const activity = await findActivity(sql, accountId, retention);
  const counted = await Promise.all(
    Object.entries(counters).map(
      async ([quota, count]) => [quota, await count(accountId)] as const,
    ),
  );
  const used: Usage['used'] = { ...usage.used, ...activity, ...Object.fromEntries(counted) };
  return quotaNames.map((quota) => {
    const limit = usage.overrides[quota] ?? quotas[quota];
    const ofIt = used[quota] ?? null;
    const level = levelOf(ofIt, limit);
    return { quota, limit, used: ofIt, ...(level === null ? {} : { level }) };
  });
}
