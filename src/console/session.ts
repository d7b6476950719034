import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { Language } from '../contract/values.ts';
import { DomainError } from '../errors.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleLogin, timestamp } from '../http/schema.ts';

const SessionAccount = z.object({
  accountAuthUuid: z.guid(),
  email: z.string(),
  name: z.string().nullable(),
  timeZone: z.string(),
  language: Language,
});
type SessionAccount = z.infer<typeof SessionAccount>;

/** The answer to the console's first request. */
export const SessionView = z.object({
  account: SessionAccount.optional().meta({ description: 'Absent without a session.' }),
  firstRun: z.boolean().meta({ description: 'Whether no account exists yet.' }),
  openRegistration: z.boolean(),
  mail: z.boolean().meta({ description: 'Whether a forgotten password can be reset by e-mail.' }),
  tiles: z
    .object({ url: z.string(), attribution: z.string() })
    .optional()
    .meta({ description: '`console.tiles`: where maps load their tiles. Absent: nowhere.' }),
  timestamp,
});
export type SessionView = z.infer<typeof SessionView>;

const Credentials = z.object({
  email: z.string(),
  password: z.string().meta({ format: 'password' }),
});

type SessionRoutesDeps = {
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
  tiles: { url: string; attribution: string } | null;
};

const tag = 'Console';
const path = '/console/session';

/** A session by cookie, for the console only: its token is in no body, and no script can read it. */
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
    summary: "Get the console's session",
    tag,
    auth: 'none',
    errors: [403],
    response: SessionView,
    handler: async ({ request }) => {
      const [account, hasAccounts] = await Promise.all([findAccount(request), deps.hasAccounts()]);
      const timestamp = request.now();
      const tiles = deps.tiles ?? undefined;
      const firstRun = !hasAccounts;
      return { account, firstRun, openRegistration, mail: hasMail, tiles, timestamp };
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
      'Sets a cookie that opens every route to pages of this origin. A request that changes ' +
      'something also needs the header `X-Sensorium-Console: 1`. Otherwise this is a session ' +
      'like any other.',
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
    description: 'Ends the session and clears the cookie.',
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

/** What decides whether a request's cookie counts. `header`: empty if it is absent. */
type CookieRequest = { method: string; header(name: string): string };

export type SessionCookie = {
  /** The session's token; null if there is no cookie. Throws `forbidden` if the cookie must not count. */
  read(request: CookieRequest): string | null;
  /** Throws `forbidden` for a page of another origin. */
  refuseForeign(request: Pick<CookieRequest, 'header'>): void;
  /** The `Set-Cookie` headers that store a token; the session ends long before the cookie. */
  keep(token: string, isHttps: boolean): string[];
  clear(isHttps: boolean): string[];
};

type SessionCookieOptions = {
  /** The keys that sign account tokens, newest first. */
  keys: readonly Buffer[];
  /** `PUBLIC_URL`; null if it is not set. */
  publicUrl: string | null;
};

/** A form cannot send it, and for a page of another origin it requires a CORS preflight. */
const consoleHeader = 'X-Sensorium-Console';

const yearSeconds = 31_536_000;
const harmless = ['GET', 'HEAD'];

/** The cookie of the console's session. No script can read it, and no other site can use it. */
export function createSessionCookie({ keys, publicUrl }: SessionCookieOptions): SessionCookie {
  const plainNames = keys.map(nameOf);
  const [plain = ''] = plainNames;
  const names = [...plainNames.map((name) => `${hostPrefix}${name}`), ...plainNames];
  const publicOrigin = publicUrl === null ? null : new URL(publicUrl).origin;
  const refuseForeign = ({ header }: Pick<CookieRequest, 'header'>) => {
    const origin = header('origin');
    if (origin === '' || origin === publicOrigin) return;
    if (isOfHost(origin, header('host'))) return;
    throw new DomainError(
      'forbidden',
      `The console's cookie is not accepted from other sites: Origin is ${origin}, but Host is ` +
        `${header('host')}. Behind a proxy that changes Host, set PUBLIC_URL.`,
    );
  };
  const attributes = (isHttps: boolean) =>
    `HttpOnly; SameSite=Strict; Path=/${isHttps ? '; Secure' : ''}`;
  const made = (name: string, token: string, isHttps: boolean) =>
    `${name}=${token}; Max-Age=${yearSeconds}; ${attributes(isHttps)}`;
  const ended = (name: string, isHttps: boolean) => `${name}=; Max-Age=0; ${attributes(isHttps)}`;
  return {
    refuseForeign,
    read(request) {
      const token = findToken(request.header('cookie'), names);
      if (token === null) return null;
      refuseForeign(request);
      if (!harmless.includes(request.method) && request.header(consoleHeader) !== '1')
        throw new DomainError(
          'forbidden',
          `A request with the cookie needs the header ${consoleHeader}: 1.`,
        );
      return token;
    },
    keep: (token, isHttps) =>
      isHttps
        ? [made(`${hostPrefix}${plain}`, token, true), ended(plain, true)]
        : [made(plain, token, false)],
    clear: (isHttps) =>
      isHttps ? [ended(`${hostPrefix}${plain}`, true), ended(plain, true)] : [ended(plain, false)],
  };
}

/**
 * Whether an origin is the one that `Host` names. Ignored are the scheme's default port (RFC 9110 section 4.2.3), the
 * dot at the end of a fully qualified name, and how an IPv6 address is written.
 */
function isOfHost(origin: string, host: string): boolean {
  const page = URL.parse(origin);
  const asked = page && URL.parse(`${page.protocol}//${host}`);
  if (!asked) return false;
  const nameOf = ({ hostname }: URL) => hostname.replace(/\.$/, '');
  return nameOf(page) === nameOf(asked) && page.port === asked.port;
}

/**
 * Over HTTPS no other host, and no page without TLS, can set a cookie with this prefix (RFC 6265bis section 4.1.3.2).
 * Browsers accept it over HTTPS only. A cookie without it was set over HTTP, or by an earlier version: it counts until
 * it ends, after the other.
 */
const hostPrefix = '__Host-';

/** Each installation has its own name: cookies ignore ports, and two installations may share a host. */
function nameOf(key: Buffer): string {
  const hash = createHmac('sha256', key).update('cookie of the console').digest('hex');
  return `sensorium-${hash.slice(0, 12)}`;
}

function findToken(header: string, names: readonly string[]): string | null {
  const pairs = header.split(';').map((pair) => pair.trim().split('=', 2));
  for (const name of names) {
    const value = pairs.find(([key]) => key === name)?.[1];
    if (value) return value;
  }
  return null;
}
