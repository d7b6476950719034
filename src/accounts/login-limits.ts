import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';
import type { Asker } from '../lib/fair-turns.ts';
import { network } from '../lib/network.ts';
import { accountKey } from './email.ts';
import { type LoginAttempts, memoryLimiters, tooManyRequests } from './limiters.ts';

export type ThrottleLimits = {
  /** Failures for one account from one address. */
  perAccount: LoginAttempts;
  /** Failures from one address, whatever the account. */
  perAddress: LoginAttempts;
};

export type LoginThrottle = {
  /** Throws `too-many-requests`. */
  check(email: string, address: string): Promise<void>;
  countFailure(email: string, address: string): Promise<void>;
  countSuccess(email: string, address: string): Promise<void>;
};

// Below the longest timer there is: 2^31 ms.
const knownSeconds = 20 * 24 * 3_600;

/**
 * Slows down guessing without giving anybody a way to lock others out: an account's limit counts one
 * address at a time. A guess spread over many addresses meets a limit for the whole account, ten
 * times as high and a minute long, which addresses that logged in before are exempt from.
 */
export function createThrottle(
  limits: ThrottleLimits,
  makeLimiter = memoryLimiters,
): LoginThrottle {
  const { perAccount, perAddress } = limits;
  const byPair = makeLimiter('login-pair', perAccount.attempts, perAccount.windowSeconds);
  const byAddress = makeLimiter('login-address', perAddress.attempts, perAddress.windowSeconds);
  const byAccount = makeLimiter('login-account', 10 * perAccount.attempts, 60);
  const known = makeLimiter('login-known', 1, knownSeconds);

  return {
    async check(email, address) {
      const pair = pairKey(email, address);
      const [ofPair, ofAddress, ofAccount, isKnown] = await Promise.all([
        byPair.get(pair),
        byAddress.get(network(address)),
        byAccount.get(accountKey(email)),
        known.get(pair),
      ]);
      refuse(byPair, ofPair);
      refuse(byAddress, ofAddress);
      if (isKnown === null) refuse(byAccount, ofAccount);
    },
    async countFailure(email, address) {
      await Promise.all([
        byPair.penalty(pairKey(email, address)),
        byAddress.penalty(network(address)),
        byAccount.penalty(accountKey(email)),
      ]);
    },
    async countSuccess(email, address) {
      const pair = pairKey(email, address);
      await Promise.all([known.set(pair, 1, knownSeconds), byPair.delete(pair)]);
    },
  };
}

function refuse(limiter: RateLimiterAbstract, result: RateLimiterRes | null): void {
  if (result === null || result.consumedPoints < limiter.points) return;
  throw tooManyRequests('failed logins', result);
}

/** An account from one address. */
export function pairKey(email: string, address: string): string {
  return `${accountKey(email)}:${network(address)}`;
}

/** Whose turn the hash of a password is. */
export function turnOf(email: string, address: string): Asker {
  return { address: network(address), who: accountKey(email) };
}

/** The turn of an account that is known; `address`: null where nobody's is. */
export function turnOfAccount(accountId: number, address: string | null): Asker {
  return { address: network(address ?? ''), who: String(accountId) };
}
