import {
  RateLimiterMemory,
  type RateLimiterAbstract,
  type RateLimiterRes,
} from 'rate-limiter-flexible';
import { DomainError, type RateLimit } from '../errors.ts';

export type LoginAttempts = { attempts: number; windowSeconds: number };

/** Makes a counter of at most `points` in `seconds`: in memory, or in Redis for all processes. */
export type MakeLimiter = (name: string, points: number, seconds: number) => RateLimiterAbstract;

/** Each process counts for itself. */
export const memoryLimiters: MakeLimiter = (keyPrefix, points, duration) =>
  new RateLimiterMemory({ keyPrefix, points, duration });

/** What is thrown where a counter is full: `too-many-requests`, until its window starts again. */
export function tooManyRequests(
  what: string,
  { msBeforeNext }: RateLimiterRes,
  rate?: Omit<RateLimit, 'resetSeconds'>,
): DomainError {
  const retryAfterSeconds = Math.ceil(msBeforeNext / 1_000);
  return new DomainError('too-many-requests', `Too many ${what}: wait a while.`, {
    retryAfterSeconds,
    ...(rate ? { rate: { ...rate, resetSeconds: retryAfterSeconds } } : {}),
  });
}
