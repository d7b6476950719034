import { createHmac } from 'node:crypto';
import { DomainError } from '../errors.ts';

/** What is asked of a request to know whether its cookie counts. `header`: empty where there is none. */
export type CookieRequest = { method: string; header(name: string): string };

export type SessionCookie = {
  /** The session's token; null where no cookie came. Throws `forbidden` where it must not count. */
  read(request: CookieRequest): string | null;
  /** Throws `forbidden` for a page of another origin. */
  refuseForeign(request: Pick<CookieRequest, 'header'>): void;
  /** The `Set-Cookie`s that keep a token; the session itself ends long before the cookie. */
  keep(token: string, isHttps: boolean): string[];
  clear(isHttps: boolean): string[];
};

export type SessionCookieOptions = {
  /** What account tokens are signed with, newest first. */
  keys: readonly Buffer[];
  /** `PUBLIC_URL`; null without. */
  publicUrl: string | null;
};

/** A form cannot send it, and a page of another origin has to ask first. */
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
      `The cookie of the console opens nothing for other sites: Origin is ${origin}, and Host ${header('host')}. ` +
        'Behind a proxy that changes Host set PUBLIC_URL.',
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
          `With a cookie the header ${consoleHeader}: 1 is needed.`,
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
 * Whether an origin is what `Host` names: with or without the default port of its scheme (RFC 9110 section 4.2.3), the dot
 * at the end of a full name, and however an IPv6 address is written.
 */
function isOfHost(origin: string, host: string): boolean {
  const page = URL.parse(origin);
  const asked = page && URL.parse(`${page.protocol}//${host}`);
  if (!asked) return false;
  const nameOf = ({ hostname }: URL) => hostname.replace(/\.$/, '');
  return nameOf(page) === nameOf(asked) && page.port === asked.port;
}

/**
 * Over HTTPS no other host and no page without TLS can set a cookie of such a name (RFC 6265bis section 4.1.3.2).
 * Browsers take it over HTTPS alone. One without it was set over HTTP, or by an earlier version: it counts until
 * it ends, behind the other.
 */
const hostPrefix = '__Host-';

/** One an installation: cookies ignore ports, and two of them may share a host. */
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
