import { RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible';
import { normalizeEmail } from './email.ts';
import { memoryLimiters, tooManyRequests } from './limiters.ts';
import { network } from '../lib/network.ts';
import { pairKey } from './login-limits.ts';

/** Logins a minute, right and wrong ones. */
export type LoginQuotas = {
  /** For one account, by its address in the normal form, from one address. */
  loginsOf: (email: string) => number;
  /** From one address, whatever the account. */
  loginsPerAddress: number;
};

/** Counts one more login; throws `too-many-requests`. */
export type CountLogin = (email: string, address: string) => Promise<void>;

const windowSeconds = 60;

/**
 * A login costs the hash of a password, so each one counts, before it is queued. Like the throttle
 * this locks nobody out: an account is counted for each address by itself, and a login refused for its
 * account is not counted for its address, which others may share.
 */
export function createLoginRates(
  { loginsOf, loginsPerAddress }: LoginQuotas,
  makeLimiter = memoryLimiters,
): CountLogin {
  /** Accounts with a limit of their own are an operator's exceptions, so these are few. */
  const byPairs = new Map<number, RateLimiterAbstract>();
  const byPairOf = (limit: number): RateLimiterAbstract => {
    const known = byPairs.get(limit);
    const limiter = known ?? makeLimiter('logins-pair', limit, windowSeconds);
    if (!known) byPairs.set(limit, limiter);
    return limiter;
  };
  const byAddress = makeLimiter('logins-address', loginsPerAddress, windowSeconds);
  return async (email, address) => {
    const pair = pairKey(email, address);
    const byPair = byPairOf(loginsOf(normalizeEmail(email)));
    await consume(byPair, pair, 'loginsPerAccount');
    try {
      await consume(byAddress, network(address), 'loginsPerAddress');
    } catch (error) {
      // Refused for its address, it must not count for its account.
      await byPair.reward(pair);
      throw error;
    }
  };
}

async function consume(limiter: RateLimiterAbstract, key: string, quota: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (reached) {
    if (!(reached instanceof RateLimiterRes)) throw reached;
    throw tooManyRequests('logins', reached, { quota, limit: limiter.points, windowSeconds });
  }
}
