import type { IncomingMessage } from 'node:http';

const slash = 47;
const absoluteForm = /^https?:\/\/([^/?#]+)/i;
const escapedUnreserved = /%(2D|2E|5F|7E|3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A])/gi;

/**
 * Rewrites a request's target as all that follows reads it: what names the whole address becomes its path, and its host
 * the request's host (RFC 9112 section 3.2.2); letters, digits, `-`, `.`, `_` and `~` that are escaped in the path become
 * what they stand for (RFC 3986 section 6.2.2.2).
 */
export function normalizeTarget(request: IncomingMessage): void {
  const { url = '' } = request;
  if (url.charCodeAt(0) === slash && !url.includes('%')) return;
  const absolute = absoluteForm.exec(url);
  if (absolute) request.headers.host = absolute[1];
  const target = absolute ? url.slice(absolute[0].length) : url;
  const queryAt = target.indexOf('?');
  const pathEnd = queryAt < 0 ? target.length : queryAt;
  const path = target
    .slice(0, pathEnd)
    .replace(escapedUnreserved, (escape) => decodeURIComponent(escape));
  request.url = (absolute && !path.startsWith('/') ? `/${path}` : path) + target.slice(pathEnd);
}

/** Whether `Host` is there as often as it has to be: once, and in HTTP/1.0 it need not be (RFC 9112 section 3.2). */
export function namesItsHost({ rawHeaders, httpVersionMinor, httpVersionMajor }: IncomingMessage) {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts === 1 || (hosts === 0 && httpVersionMajor === 1 && httpVersionMinor === 0);
}
