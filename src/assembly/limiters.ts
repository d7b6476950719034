import { memoryLimiters, type MakeLimiter } from '../accounts/limiters.ts';
import { redisLimiters } from '../accounts/redis-limiters.ts';
import { closeRedis, connectRedis } from '../lib/redis.ts';
import { tellOfRedis, type Shared } from './shared.ts';

/** Counts attempts to log in: for all processes where there is a Redis. */
export async function startLimiters({ config, log, releases }: Shared): Promise<MakeLimiter> {
  if (config.redisUrl === null) return memoryLimiters;
  const accountsLog = log.child({ component: 'accounts' });
  const onError = (err: unknown) =>
    accountsLog.warn(
      { event: 'attempts.local', err },
      'Redis does not answer: attempts to log in are counted by this process alone.',
    );
  const onBack = () => tellOfRedis(accountsLog);
  const redis = await connectRedis({ url: config.redisUrl, onError, onBack });
  releases.add('counters of attempts', () => closeRedis(redis));
  return redisLimiters(redis);
}
