import { RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible';
import { normalizeEmail } from './email.ts';
import { memoryLimiters, tooMany } from './limiters.ts';
import { network } from '../lib/network.ts';
import { pairKey } from './throttle.ts';

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
 * What a login costs is the hash of a password, so each counts, before it waits for its turn. Like
 * the throttle it locks nobody out: an account is counted for one address at a time, and what is
 * refused for its account is not counted for its address, which others may share.
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
      // Nor the other way: it has cost its account nothing.
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
    throw tooMany('logins', reached, { quota, limit: limiter.points, windowSeconds });
  }
}
