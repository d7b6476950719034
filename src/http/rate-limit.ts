import type { Context } from 'koa';
import { DomainError } from '../errors.ts';

/** How many requests a client may still make; of a bucket that fills by itself. */
export type Allowance = {
  isAllowed: boolean;
  burst: number;
  left: number;
  fullAfterSeconds: number;
  windowSeconds: number;
  retryAfterSeconds: number;
};

/**
 * Says what is left, once that is less than half, in the headers of draft-ietf-httpapi-ratelimit-headers.
 * Throws `too-many-requests` where nothing is.
 */
export function applyRateLimit(ctx: Context, allowance: Allowance): void {
  const { isAllowed, burst, left, fullAfterSeconds, windowSeconds } = allowance;
  if (isAllowed && left > burst / 2) return;
  ctx.set('RateLimit-Policy', `"requests";q=${burst};w=${windowSeconds}`);
  ctx.set('RateLimit', `"requests";r=${left};t=${fullAfterSeconds}`);
  if (isAllowed) return;
  const { retryAfterSeconds } = allowance;
  throw new DomainError('too-many-requests', 'The account asks too much at once: wait a while.', {
    retryAfterSeconds,
  });
}
