import type { Database } from '../db/database.ts';
import type { Route } from '../http/route.ts';
import type { Sessions } from '../sessions/manage.ts';
import { accountRoutes } from './account-routes.ts';
import type { DeleteAccountDeps } from './delete-account.ts';
import { loginRoutes } from './login-routes.ts';
import type { Passwords } from './passwords.ts';
import { createQueue, type Queue } from './queue.ts';
import { sessionRoutes } from './session-routes.ts';
import type { Throttle } from './throttle.ts';

export type AccountsOptions = {
  db: Database;
  sessions: Sessions;
  passwords: Passwords;
  throttle: Throttle;
  /** false: accounts are made by an administrator, from the command line. */
  openRegistration: boolean;
  onDevicesRemoved: DeleteAccountDeps['onDevicesRemoved'];
  clock: () => number;
};

export type AccountsDeps = AccountsOptions & {
  exclusively: Queue;
  revokeSession: Sessions['revoke'];
  revokeSessions: Sessions['revokeAll'];
};

/** Specification 4.1 and 4.2, and the sessions and password change beyond it. */
export function accountsRoutes(options: AccountsOptions): Route[] {
  const deps: AccountsDeps = {
    ...options,
    exclusively: createQueue({ parallel: 1, maxWaiting: 100 }),
    revokeSession: options.sessions.revoke,
    revokeSessions: options.sessions.revokeAll,
  };
  return [...loginRoutes(deps), ...accountRoutes(deps), ...sessionRoutes(deps)];
}
