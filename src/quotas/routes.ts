import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { listUsage, type UsageSources } from './list-usage.ts';
import { UsageList } from './schema.ts';

export type QuotaRouteDeps = UsageSources & { db: Sql };

/** What an account may have, and has. */
export function quotaRoutes({ db, ...sources }: QuotaRouteDeps): Route[] {
  return [
    defineRoute({
      name: 'getUsage',
      method: 'get',
      path: '/v2/accounts/usage',
      summary: 'Get what the account may use, and uses',
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      response: UsageList,
      handler: async ({ account: { accountId }, request }) => {
        const usage = await listUsage(db, sources, accountId);
        if (!usage) throw new DomainError('unauthenticated', 'The account is gone.');
        return { usage, timestamp: request.now() };
      },
    }),
  ];
}
