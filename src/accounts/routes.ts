import type { Route } from '../http/route.ts';
import { accountRoutes } from './account-routes.ts';
import type { AccountsDeps, AccountsOptions } from './deps.ts';
import { createFairQueue } from './fair-queue.ts';
import { loginRoutes } from './login-routes.ts';
import { pushTokenRoutes } from './push-tokens.ts';
import { recoveryPages } from './recovery.ts';
import { recoveryRoutes } from './recovery-routes.ts';
import { sessionRoutes } from './session-routes.ts';

/**
 * Each holds a connection to the database, and its sessions may take another one to end: fewer than the pool can be
 * configured to have, so that one of them always gets on.
 */
const turns = { parallel: 3, perAddress: 2, maxWaiting: 100 };

/** Specification 4.1 and 4.2, and the sessions, password change and push tokens beyond it. */
export function accountsRoutes(options: AccountsOptions): Route[] {
  const deps: AccountsDeps = {
    ...options,
    inTurn: createFairQueue(turns),
    revokeSession: options.sessions.revoke,
    revokeSessions: options.sessions.revokeAll,
  };
  return [
    ...loginRoutes(deps),
    ...accountRoutes(deps),
    ...sessionRoutes(deps),
    ...pushTokenRoutes({
      db: options.db,
      listSessions: options.sessions.list,
      limitOf: options.pushTokensOf,
      onPushTokens: options.onPushTokens,
    }),
    ...recoveryRoutes(deps),
    ...recoveryPages(deps),
  ];
}
