import { RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible';
import { memoryLimiters, tooMany } from './limiters.ts';
import { network } from './network.ts';
import { pairKey } from './throttle.ts';

/** Logins a minute, right and wrong ones. */
export type LoginQuotas = {
  /** For one account from one address. */
  loginsPerAccount: number;
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
  { loginsPerAccount, loginsPerAddress }: LoginQuotas,
  makeLimiter = memoryLimiters,
): CountLogin {
  const byPair = makeLimiter('logins-pair', loginsPerAccount, windowSeconds);
  const byAddress = makeLimiter('logins-address', loginsPerAddress, windowSeconds);
  return async (email, address) => {
    const pair = pairKey(email, address);
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
