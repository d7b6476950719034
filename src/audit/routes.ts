import type { Sql } from '../db/sql.ts';
import { linkNext } from '../http/page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { listEntries } from './audit.ts';
import { AuditQuery, AuditResponse } from './schema.ts';

/** An account's own trail; an addition to the specification. */
export function auditRoutes({ db }: { db: Sql }): Route[] {
  return [
    defineRoute({
      name: 'listAuditEntries',
      method: 'get',
      path: '/v2/accounts/audit',
      summary: 'Get the security audit trail',
      description:
        'Logins and refused ones, sessions that were ended, passwords, settings, devices and their ' +
        'tokens, and what the operator did. Newest first; a Link header names the next page.',
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      responseHeaders: { Link: 'The next page: `<…>; rel="next"`; absent on the last.' },
      query: AuditQuery,
      response: AuditResponse,
      handler: async ({ account, query, request }) => {
        const { entries, next } = await listEntries(db, account.accountId, query);
        if (next) linkNext(request, next);
        return { entries, timestamp: request.now() };
      },
    }),
  ];
}
