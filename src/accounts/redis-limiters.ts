import type { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import type { MakeLimiter } from './throttle.ts';

/** Counters that all processes share; while Redis is away each counts for itself. */
export function redisLimiters(redis: Redis, prefix = 'sensorium:'): MakeLimiter {
  return (name, points, duration) =>
    new RateLimiterRedis({
      storeClient: redis,
      keyPrefix: `${prefix}${name}`,
      points,
      duration,
      rejectIfRedisNotReady: true,
      insuranceLimiter: new RateLimiterMemory({ keyPrefix: name, points, duration }),
    });
}
