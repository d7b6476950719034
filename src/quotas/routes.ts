import { z } from 'zod';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { timestamp } from '../http/schema.ts';
import { type CountRetention, findActivity } from './activity.ts';
import { levelOf } from './near.ts';
import { findUsage, type Usage } from './quotas.ts';
import { type QuotaName, quotaNames, type QuotaSettings } from './settings.ts';

/** The route for an account's quotas and usage. */
export function quotaRoutes({ db, ...sources }: UsageSources & { db: Sql }): Route[] {
  return [
    defineRoute({
      name: 'getUsage',
      method: 'get',
      path: '/v2/accounts/usage',
      summary: "Get the account's quotas and usage",
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      response: UsageList,
      handler: async ({ account: { accountId }, request }) => {
        const usage = await listUsage(db, sources, accountId);
        if (!usage) throw new DomainError('unauthenticated', 'The account no longer exists.');
        return { usage, timestamp: request.now() };
      },
    }),
  ];
}

/** The answer of GET /v2/accounts/usage. */
export const UsageList = z.object({
  usage: z.array(
    z
      .object({
        quota: z.string().meta({ description: 'The same name as in errors.', example: 'devices' }),
        limit: z.int(),
        used: z.int().nullable().meta({
          description:
            'Null for the size of a single thing and for what each process counts separately.',
        }),
        level: z.enum(['near', 'used-up']).optional().meta({
          description: 'near: at least 80 % is in use. used-up: all of it is. Absent below 80 %.',
        }),
      })
      .meta({ id: 'QuotaUsage' }),
  ),
  timestamp,
});
export type UsageList = z.infer<typeof UsageList>;

type UsageSources = {
  quotas: QuotaSettings;
  retention: CountRetention;
  /** Counters that other parts keep. */
  counters?: Partial<Record<QuotaName, (accountId: number) => Promise<number>>>;
};

/** Each quota with the account's limit and usage; null if the account is gone. */
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
