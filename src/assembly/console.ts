import { join } from 'node:path';
import type { AccountsOptions } from '../accounts/deps.ts';
import { endSession } from '../accounts/end-session.ts';
import { logIn } from '../accounts/account.ts';
import { getAccount } from '../accounts/find-account.ts';
import { hasAccounts } from '../accounts/list-accounts.ts';
import { doneBy } from '../audit/entry.ts';
import type { Config } from '../config/config.ts';
import { createSessionCookie, type SessionCookie } from '../console/cookie.ts';
import { pageRoutes } from '../console/pages.ts';
import { consoleSessionRoutes } from '../console/session.ts';
import { startConsoleBuild } from '../console/start-build.ts';
import { createRefuseSlowly } from '../http/refuse-slowly.ts';
import type { Route } from '../http/route.ts';
import type { ServiceLog } from '../log/logger.ts';
import type { Doors } from './doors.ts';
import type { Shared } from './shared.ts';
import type { ReleaseSteps } from './shutdown.ts';

export type Console = {
  /** How the page's session reaches any route. */
  cookie(keys: Shared['keys']): SessionCookie;
  listRoutes(of: { shared: Shared; doors: Doors; accounts: AccountsOptions }): Route[];
};

/** Begins to build the console, beside the start of the database; null where it is turned off. */
export function startConsole(
  config: Config,
  log: ServiceLog,
  releases: ReleaseSteps,
): Console | null {
  if (!config.console.enabled || config.role.name === 'connector') return null;
  const { databaseUrl, dataDir } = config;
  const build = startConsoleBuild({
    // With a database elsewhere nothing else is kept on this machine.
    cacheDir: databaseUrl === null ? join(dataDir, 'console') : null,
    log: log.child({ component: 'console' }),
  });
  releases.add('console', () => build.close());
  const cookie = ({ accountTokens }: Shared['keys']) =>
    createSessionCookie({ keys: accountTokens, publicUrl: config.publicUrl });
  return {
    cookie,
    listRoutes({ shared, doors, accounts }) {
      build.tell();
      return [
        ...pageRoutes(build.find),
        ...listSessionRoutes(cookie(shared.keys), shared, doors, accounts),
      ];
    },
  };
}

function listSessionRoutes(
  cookie: SessionCookie,
  { db }: Shared,
  { sessions, authenticate }: Doors,
  accounts: AccountsOptions,
): Route[] {
  const refuseSlowly = createRefuseSlowly(accounts.refusalPauseMs);
  const deps = { ...accounts, revokeSession: sessions.revoke };
  return consoleSessionRoutes({
    cookie,
    authenticate,
    openRegistration: accounts.openRegistration,
    hasMail: accounts.hasMail,
    hasAccounts: () => hasAccounts(db),
    signIn: (credentials, request) => {
      const { address, receivedTs } = request;
      const hasGone = () => request.signal.aborted;
      const userAgent = request.header('user-agent');
      const login = { ...credentials, address, userAgent, receivedTs, hasGone };
      return refuseSlowly(() => logIn(deps, login, sessions.startAccountSession), request);
    },
    signOut: async (account, request) => {
      await endSession(deps, account.accountId, account.sessionId, doneBy(account, request));
    },
    describeAccount: async (accountId) => {
      const { accountUuid, email, name, timeZone, language } = await getAccount(db, accountId);
      return {
        accountAuthUuid: accountUuid,
        email,
        name,
        timeZone: timeZone ?? 'UTC',
        language: language ?? 'en',
      };
    },
  });
}
