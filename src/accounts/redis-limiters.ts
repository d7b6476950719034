import type { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { memoryLimiters, type MakeLimiter } from './limiters.ts';

/** Counters that all processes share; while Redis is away each counts for itself. */
export function redisLimiters(redis: Redis, prefix = 'sensorium:'): MakeLimiter {
  return (name, points, duration) =>
    new RateLimiterRedis({
      storeClient: redis,
      keyPrefix: `${prefix}${name}`,
      points,
      duration,
      rejectIfRedisNotReady: true,
      insuranceLimiter: memoryLimiters(name, points, duration),
    });
}
