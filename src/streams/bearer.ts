import type { RequestInfo } from '../http/route.ts';

/** The token of a request that was let in by it, to ask later whether it still opens. */
export function bearerOf(request: RequestInfo): string {
  return request
    .header('authorization')
    .replace(/^\S+\s+/, '')
    .trim();
}
