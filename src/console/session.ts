import { z } from 'zod';
import { Language } from '../contract/language.ts';
import { DomainError } from '../errors.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleLogin, timestamp } from '../http/schema.ts';
import type { SessionCookie } from './cookie.ts';

const SessionAccount = z.object({
  accountAuthUuid: z.guid(),
  email: z.string(),
  name: z.string().nullable(),
  timeZone: z.string(),
  language: Language,
});
type SessionAccount = z.infer<typeof SessionAccount>;

/** What the console asks first. */
export const SessionView = z.object({
  account: SessionAccount.optional().meta({ description: 'Absent without a session.' }),
  firstRun: z.boolean().meta({ description: 'Whether there is no account yet.' }),
  openRegistration: z.boolean(),
  mail: z.boolean().meta({ description: 'Whether a forgotten password can be set by mail.' }),
  timestamp,
});
export type SessionView = z.infer<typeof SessionView>;

const Credentials = z.object({
  email: z.string(),
  password: z.string().meta({ format: 'password' }),
});

export type SessionRoutesDeps = {
  cookie: SessionCookie;
  /** Verifies the credentials and begins a session. Throws `unauthenticated`, or `too-many-requests`. */
  signIn: (
    credentials: z.infer<typeof Credentials>,
    request: RequestInfo,
  ) => Promise<{ accountId: number; token: string }>;
  authenticate: (token: string) => Promise<Account>;
  signOut: (account: Account, request: RequestInfo) => Promise<void>;
  describeAccount: (accountId: number) => Promise<SessionAccount>;
  hasAccounts: () => Promise<boolean>;
  openRegistration: boolean;
  hasMail: boolean;
};

const tag = 'Console';
const path = '/console/session';

/** A session by cookie, for the console alone: its token is in no body, and no script can read it. */
export function consoleSessionRoutes(deps: SessionRoutesDeps): Route[] {
  return [describe(deps), begin(deps), end(deps)];
}

function describe(deps: SessionRoutesDeps): Route {
  const { cookie, authenticate, describeAccount, openRegistration, hasMail } = deps;
  const findAccount = async (request: RequestInfo) => {
    const header = (name: string) => request.header(name);
    const token = cookie.read({ method: 'GET', header });
    if (token === null) return undefined;
    try {
      const { accountId } = await authenticate(token);
      return await describeAccount(accountId);
    } catch (error) {
      if (isOver(error)) return undefined;
      throw error;
    }
  };
  return defineRoute({
    name: 'getConsoleSession',
    method: 'get',
    path,
    summary: 'Who is signed in to the console',
    tag,
    auth: 'none',
    errors: [403],
    response: SessionView,
    handler: async ({ request }) => {
      const [account, hasAccounts] = await Promise.all([findAccount(request), deps.hasAccounts()]);
      const timestamp = request.now();
      return { account, firstRun: !hasAccounts, openRegistration, mail: hasMail, timestamp };
    },
  });
}

function begin({ cookie, signIn, describeAccount }: SessionRoutesDeps): Route {
  return defineRoute({
    name: 'beginConsoleSession',
    method: 'post',
    path,
    summary: 'Sign in to the console',
    description:
      'Sets a cookie that opens every route for pages of this origin; with `X-Sensorium-Console: 1` also ' +
      'what changes something. A session like any other.',
    tag,
    auth: 'none',
    errors: [401, 403, 429],
    responseHeaders: { 'Set-Cookie': 'The session.' },
    body: Credentials,
    example: exampleLogin,
    response: z.object({ account: SessionAccount, timestamp }),
    handler: async ({ body, request }) => {
      cookie.refuseForeign({ header: (name) => request.header(name) });
      const { accountId, token } = await signIn(body, request);
      const account = await describeAccount(accountId);
      request.setHeader('Set-Cookie', cookie.keep(token, request.isHttps));
      return { account, timestamp: request.now() };
    },
  });
}

function end({ cookie, signOut }: SessionRoutesDeps): Route {
  return defineRoute({
    name: 'endConsoleSession',
    method: 'delete',
    path,
    summary: 'Sign out of the console',
    description: 'Ends the session, and clears the cookie.',
    tag,
    auth: 'account',
    errors: [],
    responseHeaders: { 'Set-Cookie': 'Clears the session.' },
    response: z.object({ timestamp }),
    handler: async ({ account, request }) => {
      await signOut(account, request);
      request.setHeader('Set-Cookie', cookie.clear(request.isHttps));
      return { timestamp: request.now() };
    },
  });
}

/** Signed out, expired, or the account is gone: no session, and no error. */
function isOver(error: unknown): boolean {
  return error instanceof DomainError && ['unauthenticated', 'not-found'].includes(error.code);
}
