import { createHmac } from 'node:crypto';
import { DomainError } from '../errors.ts';

/** What is asked of a request to know whether its cookie counts. `header`: empty where there is none. */
export type CookieRequest = { method: string; header(name: string): string };

export type SessionCookie = {
  /** The session's token; null where no cookie came. Throws `forbidden` where it must not count. */
  read(request: CookieRequest): string | null;
  /** Throws `forbidden` for a page of another origin. */
  refuseForeign(request: Pick<CookieRequest, 'header'>): void;
  /** The `Set-Cookie` that keeps a token; the session itself ends long before the cookie. */
  keep(token: string, isHttps: boolean): string;
  clear(isHttps: boolean): string;
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
  const names = keys.map(nameOf);
  const name = names[0] ?? '';
  const publicOrigin = publicUrl === null ? null : new URL(publicUrl).origin;
  const refuseForeign = ({ header }: Pick<CookieRequest, 'header'>) => {
    const origin = header('origin');
    if (origin === '' || origin === publicOrigin) return;
    if (URL.parse(origin)?.host === header('host').toLowerCase()) return;
    throw new DomainError('forbidden', 'The cookie of the console opens nothing for other sites.');
  };
  const attributes = (isHttps: boolean) =>
    `HttpOnly; SameSite=Strict; Path=/${isHttps ? '; Secure' : ''}`;
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
    keep: (token, isHttps) => `${name}=${token}; Max-Age=${yearSeconds}; ${attributes(isHttps)}`,
    clear: (isHttps) => `${name}=; Max-Age=0; ${attributes(isHttps)}`,
  };
}

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
