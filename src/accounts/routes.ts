import type { Route } from '../http/route.ts';
import { accountRoutes } from './account-routes.ts';
import type { AccountsDeps, AccountsOptions } from './deps.ts';
import { loginRoutes } from './login-routes.ts';
import { recoveryPages } from './recovery-pages.ts';
import { recoveryRoutes } from './recovery-routes.ts';
import { createWorkQueue } from './work-queue.ts';
import { sessionRoutes } from './session-routes.ts';

/** Specification 4.1 and 4.2, and the sessions and password change beyond it. */
export function accountsRoutes(options: AccountsOptions): Route[] {
  const deps: AccountsDeps = {
    ...options,
    exclusively: createWorkQueue({ parallel: 1, maxWaiting: 100 }),
    revokeSession: options.sessions.revoke,
    revokeSessions: options.sessions.revokeAll,
  };
  return [
    ...loginRoutes(deps),
    ...accountRoutes(deps),
    ...sessionRoutes(deps),
    ...recoveryRoutes(deps),
    ...recoveryPages(deps),
  ];
}
