import { RateLimiterMemory, type RateLimiterAbstract } from 'rate-limiter-flexible';

export type Attempts = { attempts: number; windowSeconds: number };

/** Makes a counter of at most `points` in `seconds`: in memory, or in Redis for all processes. */
export type MakeLimiter = (name: string, points: number, seconds: number) => RateLimiterAbstract;

/** Each process counts for itself. */
export const memoryLimiters: MakeLimiter = (keyPrefix, points, duration) =>
  new RateLimiterMemory({ keyPrefix, points, duration });
