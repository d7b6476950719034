import { RateLimiterRes } from 'rate-limiter-flexible';
import { memoryLimiters, tooManyRequests, type LoginAttempts } from './limiters.ts';
import { network } from '../lib/network.ts';

/** Counts one more registration from an address; throws `too-many-requests`. */
export type CountRegistration = (address: string) => Promise<void>;

/**
 * Every attempt counts, also one for an e-mail address that is taken: it costs the hash of a password
 * too, and tells who has an account.
 */
export function createRegistrationLimit(
  { attempts, windowSeconds }: LoginAttempts,
  makeLimiter = memoryLimiters,
): CountRegistration {
  const byAddress = makeLimiter('register-address', attempts, windowSeconds);
  return async (address) => {
    try {
      await byAddress.consume(network(address));
    } catch (reached) {
      if (!(reached instanceof RateLimiterRes)) throw reached;
      throw tooManyRequests('registrations', reached);
    }
  };
}
